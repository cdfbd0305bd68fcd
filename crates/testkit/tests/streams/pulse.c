/* A stream function that publishes events from connections and from a timer, and that fails now and then. */
#include <braid_nf.h>
#include <stdlib.h>

struct pulse {
  braid_event seen;
  uint64_t calls;
};

static void say(braid_host *h, struct pulse *p, braid_wide src, uint64_t sport, uint64_t dport) {
  braid_value values[3];
  values[0] = braid_number_wide(src);
  values[1] = braid_number(sport & 0xffff);
  values[2] = braid_number(dport & 0xffff);
  braid_publish(h, p->seen, values, 3);
}

static void beat(void *self, braid_host *h, void *arg) {
  struct pulse *p = self;
  braid_wide src = {0x0a000002, 0};
  (void)arg;
  say(h, p, src, p->calls, 1);
}

static int32_t create(braid_host *h, void **self) {
  struct pulse *p = calloc(1, sizeof *p);
  if (!p) return BRAID_FAILED;
  p->seen = braid_event_named(h, "SEEN");
  *self = p;
  return braid_every(h, 2000000000u, beat, NULL);
}

static int32_t data(void *self, braid_host *h, const braid_connection *c, const braid_data *d) {
  struct pulse *p = self;
  p->calls++;
  say(h, p, d->from_client ? c->client : c->server, d->offset + d->missing, d->length);
  if (p->calls % 11 == 0) return braid_fail(h, "the eleventh call");
  if (p->calls % 17 == 0) return BRAID_BYPASS;
  if (p->calls % 40 == 0) return BRAID_RESET(0);
  return p->calls % 23 ? BRAID_FORWARD : 77;
}

static int32_t save(void *self, braid_host *h, braid_saved *s) {
  struct pulse *p = self;
  (void)h;
  braid_save(s, &p->calls, sizeof p->calls);
  return 0;
}

static int32_t restore(void *self, braid_host *h, const uint8_t *bytes, size_t length) {
  struct pulse *p = self;
  size_t i;
  if (length != sizeof p->calls) return braid_fail(h, "its memory has another size");
  for (i = 0; i < length; i++) ((uint8_t *)&p->calls)[i] = bytes[i];
  return 0;
}

BRAID_NF(pulse, .create = create, .destroy = free, .data = data, .save = save, .restore = restore, .reasons = "pulse",
         .events = "SEEN { src: addr, sport: u16, dport: u16 }");
