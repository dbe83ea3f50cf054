/*
 * policy.c - when to train again, and whether a model pays; see policy.h.
 *
 * The unit is a page visit: a descent of a tree of height h visits h pages, a lookup that the model answers
 * one, a step to the right one more.  (Bourbon, Dai et al. 2020, decides in the same way, by measured
 * times, whether a file's model is worth making.)
 *
 *   When to train: when as much was lost to an old model since the training as another one costs (then all
 *   of it together is at most twice what the best choice of times would have cost), and, before that is
 *   felt, when a share of the leaves has split, or pages were deleted.
 *
 *   Whether it pays: when the visits that predictions save are more than those that failed ones waste.
 *   Computing a prediction costs about half a visit (measured: 1.2 us against 3.4 us for four pages).
 */
#include "registry/policy.h"

#include "registry/settings.h"
#include "utils/timestamp.h"

/* A split at every so many leaves is worth a training; in small indexes so many splits, or this share. */
#define SPLIT_SHARE 50
#define SPLITS_MIN 64
#define SPLIT_SHARE_SMALL 4

/* Page visits that a training costs: so many for each leaf's share, and for starting a worker. */
#define TRAINING_LEAVES_A_VISIT 8
#define TRAINING_VISITS_MIN 4096

/* A descent from a failed prediction wastes the way to it. */
#define VISITS_A_PREDICTION 1.5

/* Predictions before a model is judged, and after which the older half is forgotten. */
#define WINDOW_MIN 1000
#define WINDOW_MAX 65536

/* Models of one index in a row that did not pay before retraining is left to others. */
#define STRIKES_MAX 3

/* The pause after a training that failed: the first one, doubled with each further one in a row, and the longest. */
#define PAUSE_MS 1000
#define PAUSE_MAX_MS (60 * 60 * 1000)

void
lbt_policy_pause(LbtEntry *entry)
{
	int			pause = Min(PAUSE_MS << Min(entry->failures, 16), PAUSE_MAX_MS);

	if (entry->failures < PG_UINT8_MAX)
		entry->failures++;
	entry->not_before = Max(entry->not_before, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), pause));
}

void
lbt_policy_settle(LbtEntry *entry, const LbtModelHeader *header, uint32 fingerprint)
{
	bool		ready = entry->state == LBT_READY;
	bool		saved = ready && header->source == LBT_FROM_SAVED;

	memset(&entry->since, 0, sizeof(entry->since));
	memset(&entry->window, 0, sizeof(entry->window));
	entry->wanted = saved && lbt_autotrain;
	if (entry->state == LBT_NO_MEMORY)
	{
		lbt_policy_pause(entry);
		return;
	}
	entry->failures = 0;
	if (!ready)
		return;
	if (!saved)
		entry->attempted_at = GetCurrentTimestamp();
	if (!saved && fingerprint == entry->fingerprint)
		entry->futile = Min(entry->futile + 1, 20);
	else
		entry->futile = 0;
	entry->fingerprint = fingerprint;
	entry->nleaves = header->nleaves;
	entry->height = Max(header->height, 2);
}

/*
 * Trainings that found nothing new make the next one wait for twice the loss.  What is lost counts only
 * once the model can be judged as well, lest one that does not pay be trained again and again.
 */
static bool
wants_training(const LbtEntry *entry, int retrain_splits)
{
	const LbtSince *since = &entry->since;
	uint64		threshold = retrain_splits >= 0 ? retrain_splits :
		Max(entry->nleaves / SPLIT_SHARE, Min(SPLITS_MIN, entry->nleaves / SPLIT_SHARE_SMALL));
	double		lost = since->moved + since->fallbacks * (VISITS_A_PREDICTION + entry->height);
	double		cost = Max(entry->nleaves / TRAINING_LEAVES_A_VISIT, TRAINING_VISITS_MIN);

	return since->splits >= Max(threshold, 1) || since->deleted > 0 ||
		(entry->window.predictions >= WINDOW_MIN && lost >= cost * (1 << entry->futile));
}

/* Do predictions save anything? */
static bool
pays(const LbtEntry *entry)
{
	const LbtWindow *w = &entry->window;
	double		hits = w->predictions - Min(w->fallbacks, w->predictions);

	return w->predictions < WINDOW_MIN ||
		hits * (entry->height - VISITS_A_PREDICTION) >
		w->moved + w->fallbacks * VISITS_A_PREDICTION;
}

static void
add_events(LbtEntry *entry, const uint64 *events)
{
	LbtSince   *since = &entry->since;
	LbtWindow  *window = &entry->window;
	uint64		failed = events[LBT_EV_BAD_BLOCK] + events[LBT_EV_BAD_PAGE] +
		events[LBT_EV_LOW] + events[LBT_EV_HIGH];
	uint64		twice = events[LBT_EV_INSERT_FULL] + events[LBT_EV_INSERT_EQUAL];
	uint64		predictions = events[LBT_EV_VERIFIED] + failed + events[LBT_EV_INSERT];
	uint64		moved = events[LBT_EV_MOVED_RIGHT] + events[LBT_EV_INSERT_MOVED];

	failed += events[LBT_EV_INSERT_FALLBACK];
	since->predictions += predictions;
	since->moved += moved;
	since->fallbacks += failed;
	since->splits += events[LBT_EV_SPLIT];
	since->deleted += events[LBT_EV_PAGE_DELETED];

	/*
	 * Right about the leaf, but nbtree had to go there again: nothing saved,
	 * and no fault of the model.
	 */
	predictions -= Min(twice, predictions);

	/*
	 * One flush may bring more than a window holds: then it is all of it,
	 * scaled down.
	 */
	while (predictions > WINDOW_MAX)
	{
		predictions /= 2;
		moved /= 2;
		failed /= 2;
		memset(window, 0, sizeof(*window));
	}
	if (window->predictions + predictions > WINDOW_MAX)
	{
		window->predictions /= 2;
		window->moved /= 2;
		window->fallbacks /= 2;
	}
	window->predictions += predictions;
	window->moved += moved;
	window->fallbacks += failed;
}

void
lbt_policy_switch_off(LbtEntry *entry)
{
	entry->state = LBT_NOT_PAYING;
	entry->memory = InvalidDsaPointer;
	entry->changed_at = GetCurrentTimestamp();
	if (entry->strikes < STRIKES_MAX)
		entry->strikes++;
	entry->wanted = lbt_autotrain && entry->strikes < STRIKES_MAX &&
		(entry->wanted || entry->since.splits + entry->since.deleted > 0);
}

bool
lbt_policy_report(LbtEntry *entry, const uint64 *events, int retrain_splits)
{
	add_events(entry, events);
	if (entry->state != LBT_READY)
		return true;
	if (!pays(entry))
		return false;
	if (lbt_autotrain && wants_training(entry, retrain_splits) && entry->not_before <= GetCurrentTimestamp())
		entry->wanted = true;	/* else it failed a moment ago: no use */
	if (entry->window.predictions > WINDOW_MAX / 2)
		entry->strikes = 0;
	return true;
}
