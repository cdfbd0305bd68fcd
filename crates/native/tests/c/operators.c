/* Operators for the tests, right and wrong ones. */
#include <braid_nf.h>

/* The number of bits that are set in all arguments together. */
static void bits(const braid_wide *args, size_t count, const uint8_t *payload, size_t length, braid_wide *result) {
  (void)payload;
  for (size_t at = 0; at < count; at++)
    for (int bit = 0; bit < 64; bit++) result->low += (args[at].low >> bit & 1) + (args[at].high >> bit & 1);
  if (length != 0) result->low = 1000; /* the payload is not for it */
}

/* The sum of the payload's bytes, and of their number, but at most the argument. */
static void weight(const braid_wide *args, size_t count, const uint8_t *payload, size_t length, braid_wide *result) {
  (void)count;
  result->low = length;
  for (size_t at = 0; at < length; at++) result->low += payload[at];
  if (result->low > args[0].low) result->low = args[0].low;
}

/* All bits, which are more than most types have. */
static void ones(const braid_wide *args, size_t count, const uint8_t *payload, size_t length, braid_wide *result) {
  (void)args, (void)count, (void)payload, (void)length;
  result->low = result->high = UINT64_MAX;
}

BRAID_OPERATOR(bits, .run = bits);
BRAID_OPERATOR(weight, .run = weight, .reads_payload = 1);
BRAID_OPERATOR(ones, .run = ones);
BRAID_OPERATOR(idle, .reads_payload = 0);

BRAID_EXPORT const braid_operator braid_operator_old = {.abi = 0, .size = sizeof(braid_operator), .run = ones};
BRAID_EXPORT const braid_operator braid_operator_short = {.abi = BRAID_NF_ABI, .size = 8, .run = ones};
