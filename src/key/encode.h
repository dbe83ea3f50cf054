/*
 * encode.h - byte strings, for the key code, of values whose order is neither that of numbers nor of their
 * own bytes.
 *
 * An encoding keeps the order of the column's comparison function: a <= b implies encoding(a) <= encoding(b)
 * by memcmp(), the shorter first.  Different values may have the same one.  Pages are compared by the
 * comparison function itself, so that a sort key which breaks this rule costs a fallback, nothing else.
 */
#ifndef LBT_ENCODE_H
#define LBT_ENCODE_H

#include "key/keyspec.h"

/*
 * Encode a value of an encoded column (the column's own type; of a varlena type one that is neither
 * compressed nor out of line) into room, LBT_KEY_ROOM bytes; returns the length.
 */
extern uint32 lbt_encode(const LbtKeyColumn *column, Datum value, uint8 *room);

/* Has LBT_ENCODE_RANGE an encoding for this range type? */
extern bool lbt_range_encodable(Oid type);

#endif							/* LBT_ENCODE_H */
