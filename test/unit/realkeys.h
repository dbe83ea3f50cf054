/*
 * realkeys.h - real key sets, files NAME.txt.xz of one key a line.
 */
#ifndef LBT_REALKEYS_H
#define LBT_REALKEYS_H

#include <stdio.h>

/* The lines of a key set, in the folder that the environment variable LBT_KEYS names; to be closed with pclose(). */
extern FILE *open_real_keys(const char *name);

#endif							/* LBT_REALKEYS_H */
