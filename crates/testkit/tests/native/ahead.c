/* A function that does everything that functions may do. What it does depends on all packets before, and on when they
 * came. It crashes for packets to port 666. */
#include <braid_nf.h>
#include <stdlib.h>
#include <string.h>

struct memory { uint64_t state, packets; };

static braid_field dport;
static braid_tag colour;
static braid_event seen;

static void mix(struct memory *m, uint64_t value) { m->state = (m->state ^ value) * 0x100000001b3 ^ m->state >> 29; }

/* Comes every 7 ms. */
static void tick(void *self, braid_host *host, void *arg) {
  (void)arg;
  mix(self, braid_now(host));
  braid_log(host, "info", "tick");
}

static int32_t create(braid_host *host, void **self) {
  dport = braid_field_named(host, "l4.dport");
  colour = braid_tag_named(host, "colour");
  seen = braid_event_named(host, "SEEN");
  *self = calloc(1, sizeof(struct memory));
  return *self ? 0 : braid_fail(host, "no memory");
}

static int32_t create_with_timer(braid_host *host, void **self) {
  int32_t result = create(host, self);
  return result ? result : braid_every(host, 7000000, tick, NULL);
}

/* Takes a packet into the memory. */
static void learn(struct memory *m, braid_packet *p) {
  size_t length = 0;
  const uint8_t *bytes = braid_bytes(p, &length);
  uint64_t port = 0, tag = 0;
  if (braid_get(p, dport, &port) == BRAID_OK && port == 666) { volatile int *nowhere = NULL; *nowhere = 1; }
  braid_get_tag(p, colour, &tag);
  for (size_t at = 0; at < length; at++) mix(m, bytes[at]);
  mix(m, length);
  mix(m, tag);
  mix(m, braid_now(p->host));
  m->packets++;
}

static int32_t everything(void *self, braid_packet *p) {
  static const uint8_t more[100];
  struct memory *m = self;
  braid_value value;
  size_t length = 0;
  uint8_t *bytes;
  learn(m, p);
  value = braid_number(m->state);
  braid_set_tag(p, colour, m->state & 0xff);
  if (m->state % 9 == 0) braid_publish(p->host, seen, &value, 1);
  bytes = braid_change_bytes(p, &length);
  if (m->state % 7 == 0 && bytes && length > 60) bytes[length - 1] ^= 0x55;
  if (m->state % 11 == 0) braid_send(p, bytes, length, BRAID_BACK);
  if (m->state % 13 == 0) braid_send(p, bytes, length, BRAID_FORWARD);
  if (m->state % 5 == 0) braid_insert(p, 14, more, 1 + m->state / 5 % sizeof more);
  switch (m->state % 19) {
    case 0: return BRAID_DROP(0);
    case 1: return BRAID_BACK;
    case 2: return BRAID_CONSUME;
    case 3: return BRAID_PORT(0);
    case 4: return BRAID_FAILED;
    default: return BRAID_FORWARD;
  }
}

/* Sends and publishes nothing, so that nothing ends its work ahead. */
static int32_t quiet(void *self, braid_packet *p) {
  struct memory *m = self;
  size_t length = 0;
  uint8_t *bytes;
  learn(m, p);
  braid_set_tag(p, colour, m->state & 0xff);
  bytes = braid_change_payload(p, &length);
  if (m->state % 2 && bytes && length > 0) bytes[length - 1] ^= 0x55;
  return m->state % 5 ? BRAID_FORWARD : BRAID_DROP(0);
}

/* The same, but it publishes, and its timer works. */
static int32_t telling(void *self, braid_packet *p) {
  struct memory *m = self;
  int32_t verdict = quiet(self, p);
  braid_value value = braid_number(m->state);
  if (m->state % 9 == 0) braid_publish(p->host, seen, &value, 1);
  return verdict;
}

static void dump(void *self, braid_dump *into) {
  struct memory *m = self;
  braid_item items[] = {{"state", BRAID_UINT, 0, {m->state, 0}}, {"packets", BRAID_UINT, 0, {m->packets, 0}}};
  into->api->dump_entry(into, "memory", NULL, 0, items, 2);
}

static int32_t save(void *self, braid_host *host, braid_saved *into) {
  (void)host;
  into->api->save_bytes(into, self, sizeof(struct memory));
  return 0;
}

static int32_t restore(void *self, braid_host *host, const uint8_t *bytes, size_t length) {
  if (length != sizeof(struct memory)) return braid_fail(host, "other bytes");
  memcpy(self, bytes, length);
  return 0;
}

#define COMMON .dump = dump, .reasons = "some", .ports = "tap", .tags = "colour: u8", .events = "SEEN extends EVENT { state: u64 }"

BRAID_NF(everything, .packet = everything, .create = create_with_timer, .sends = 2, .save = save, .restore = restore, COMMON);
BRAID_NF(forgetful, .packet = everything, .create = create_with_timer, .sends = 2, COMMON);

static const braid_profile writes_payloads = {"*", "payload", BRAID_MAY_DROP, 0};
BRAID_NF(quiet, .packet = quiet, .create = create, .save = save, .restore = restore, .profile = &writes_payloads, COMMON);
BRAID_NF(telling, .packet = telling, .create = create_with_timer, .save = save, .restore = restore, .profile = &writes_payloads,
         COMMON);
