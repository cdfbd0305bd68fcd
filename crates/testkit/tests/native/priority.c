/* Functions that change packets in different ways, for tests of `Priority`. */
#include <braid_nf.h>
#include <stdlib.h>

static uint64_t number(braid_host *host, const char *parameter) {
  uint64_t value = 0;
  braid_config(host, parameter, &value);
  return value;
}

struct setter { uint64_t ttl, sport; braid_field of_ttl, of_sport; };

static int32_t create_setter(braid_host *host, void **self) {
  struct setter *made = calloc(1, sizeof *made);
  made->ttl = number(host, "ttl");
  made->sport = number(host, "sport");
  made->of_ttl = braid_field_named(host, "inet.ttl");
  made->of_sport = braid_field_named(host, "l4.sport");
  *self = made;
  return 0;
}

/* Sets the TTL and the source port. */
static int32_t sets(void *self, braid_packet *p) {
  struct setter *own = self;
  braid_set(p, own->of_ttl, own->ttl);
  braid_set(p, own->of_sport, own->sport);
  return BRAID_FORWARD;
}
static const braid_profile writes = {"", "inet.ttl l4.sport", 0, 0};
BRAID_NF(sets, .packet = sets, .create = create_setter, .destroy = free, .profile = &writes);

/* Changes the first two bytes of the payload, which changes its checksum, too, if there is one. */
static int32_t scribble(void *self, braid_packet *p) {
  size_t length = 0;
  uint8_t *payload = braid_change_payload(p, &length);
  (void)self;
  if (payload && length > 1) {
    uint8_t first = payload[0];
    payload[0] = payload[1];
    payload[1] = (uint8_t)(first + 1);
  }
  return BRAID_FORWARD;
}
BRAID_NF(scribble, .packet = scribble);

/* Adds a VLAN tag with identifier 5 and priority 1. */
static int32_t tagger(void *self, braid_packet *p) {
  (void)self;
  braid_insert(p, 12, "\x81\x00\x20\x05", 4);
  return BRAID_FORWARD;
}
BRAID_NF(tagger, .packet = tagger);

/* Adds two bytes behind the packet. */
static int32_t longer(void *self, braid_packet *p) {
  size_t length = 0;
  (void)self;
  braid_bytes(p, &length);
  braid_insert(p, length, "!!", 2);
  return BRAID_FORWARD;
}
BRAID_NF(longer, .packet = longer);

/* Drops packets from a source port, fails for the next one, and sends those from the one behind that back. */
static int32_t create_filter(braid_host *host, void **self) {
  return create_setter(host, self);
}
static int32_t filter(void *self, braid_packet *p) {
  struct setter *own = self;
  uint64_t port = 0;
  if (braid_get(p, own->of_sport, &port) != BRAID_OK) return BRAID_FORWARD;
  if (port == own->sport) return BRAID_DROP(0);
  if (port == own->sport + 1) return BRAID_FAILED;
  if (port == own->sport + 2) return BRAID_BACK;
  return BRAID_FORWARD;
}
static const braid_profile filters = {"l4.sport", "", BRAID_MAY_DROP | BRAID_MAY_REDIRECT, 0};
BRAID_NF(filter, .packet = filter, .create = create_filter, .destroy = free, .reasons = "port", .profile = &filters);
