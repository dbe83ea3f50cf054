/*
 * contract_saved.h - saved models: what comes back keeps the contract of saved.h.
 */
#ifndef LBT_CONTRACT_SAVED_H
#define LBT_CONTRACT_SAVED_H

#include "saved.h"

/* The key code of one unsigned column. */
extern const LbtKeyCode one_column;

/* Encode into exactly room bytes; returns a copy of exactly the length used, or NULL. */
extern uint8_t *encode(const LbtKeyCode *code, const LbtLeaf *leaves, uint32_t nleaves, size_t room, size_t *len);

/*
 * Decode exactly these bytes; what comes back, if anything, keeps the contract.  Returns the leaves, which the caller
 * frees, or NULL.
 */
extern LbtLeaf *decode(const uint8_t *bytes, size_t len, LbtKeyCode *code, uint32_t nleaves);

/* Encode and decode: the key code and the blocks come back as they were.  Returns as decode(), or NULL for no room. */
extern LbtLeaf *save(const LbtKeyCode *code, const LbtLeaf *leaves, uint32_t nleaves, size_t room, size_t *len);

#endif							/* LBT_CONTRACT_SAVED_H */
