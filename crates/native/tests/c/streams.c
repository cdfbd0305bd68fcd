/* Stream functions: one that tells what it gets, and some that go wrong. Each name says how. */
#include <braid_nf.h>
#include <stdio.h>
#include <string.h>

struct kept { uint64_t calls; };

static int32_t told_open(void *self, braid_host *h, const braid_connection *c) {
  char text[160];
  struct kept *kept = braid_flow_memory(h, c->flow);
  snprintf(text, sizeof text, "open %d v%u %llx:%u %llx:%u, memory %d", (int)c->flow, c->version,
           (unsigned long long)c->client.low, c->client_port, (unsigned long long)c->server.low, c->server_port,
           kept ? (int)kept->calls++ : -1);
  braid_log(h, "info", text);
  return c->server_port == 22 ? BRAID_BYPASS : BRAID_FORWARD;
}
static int32_t told_data(void *self, braid_host *h, const braid_connection *c, const braid_data *d) {
  char text[160];
  struct kept *kept = braid_flow_memory(h, c->flow);
  snprintf(text, sizeof text, "data %d %s %.*s at %d, %d missing, memory %d", (int)c->flow,
           d->from_client ? "client" : "server", (int)d->length, (const char *)d->bytes, (int)d->offset,
           (int)d->missing, kept ? (int)kept->calls++ : -1);
  braid_log(h, "info", text);
  if (d->length == 5 && !memcmp(d->bytes, "reset", 5)) return BRAID_RESET(1);
  if (d->length == 5 && !memcmp(d->bytes, "leave", 5)) return BRAID_BYPASS;
  return BRAID_FORWARD;
}
static void told_close(void *self, braid_host *h, const braid_connection *c) {
  char text[40];
  snprintf(text, sizeof text, "close %d", (int)c->flow);
  braid_log(h, "info", text);
}
static void told_end(void *self, braid_host *h, braid_flow flow, void *memory) {
  char text[80];
  snprintf(text, sizeof text, "end %d after %d calls", (int)flow, (int)((struct kept *)memory)->calls);
  braid_log(h, "info", text);
}
static int32_t told_save(void *self, braid_host *h, braid_saved *s) { return BRAID_OK; }
static int32_t told_restore(void *self, braid_host *h, const uint8_t *bytes, size_t length) { return BRAID_OK; }
BRAID_NF(told, .open = told_open, .data = told_data, .close = told_close, .flow_end = told_end, .save = told_save,
         .restore = told_restore, .flow_bytes = sizeof(struct kept), .flow_capacity = 2, .reasons = "no\nword");

/* The first byte says how it goes wrong. */
static int32_t wrong_data(void *self, braid_host *h, const braid_connection *c, const braid_data *d) {
  switch (d->bytes[0]) {
    case 'd': return BRAID_DROP(0);
    case 'p': return BRAID_PORT(0);
    case 'r': return BRAID_RESET(1);
    case 'f': return braid_fail(h, "no such protocol");
    case 's': return BRAID_FAILED;
    case 'b': return braid_send_from_timer(h, d->bytes, d->length, BRAID_FORWARD) == BRAID_MISUSE ? BRAID_FORWARD : 99;
    case 'a': return braid_add_header_action(h, c->flow, braid_forward()) == BRAID_MISUSE ? BRAID_FORWARD : 99;
    case 'e': braid_end_flow(h, c->flow); braid_end_flow(h, c->flow); return BRAID_FORWARD;
    default: return 77;
  }
}
BRAID_NF(wrong, .data = wrong_data, .reasons = "no");

static int32_t forward(void *self, braid_packet *p) { return BRAID_FORWARD; }
static int32_t go_on(void *self, braid_host *h, const braid_connection *c) { return BRAID_FORWARD; }
static const braid_profile profile = {"", "", 0, 0};
BRAID_NF(both, .packet = forward, .open = go_on);
BRAID_NF(ported, .open = go_on, .ports = "tap");
BRAID_NF(tagged, .open = go_on, .tags = "colour: u8");
BRAID_NF(sending, .open = go_on, .sends = 1);
BRAID_NF(profiled, .open = go_on, .profile = &profile);
