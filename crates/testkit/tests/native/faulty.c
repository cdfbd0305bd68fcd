/* Functions that fail on purpose. */
#define _GNU_SOURCE
#include "braid_nf.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static braid_field sport, dport;

struct counted { uint64_t packets; };

static int32_t create(braid_host *host, void **self) {
  dport = braid_field_named(host, "l4.dport");
  sport = braid_field_named(host, "l4.sport");
  *self = calloc(1, sizeof(struct counted));
  return *self ? 0 : braid_fail(host, "no memory");
}

/* Crashes, never returns or ends for packets to three ports. Drops packets to port 25. */
static int32_t faulty(void *self, braid_packet *packet) {
  struct counted *counted = self;
  uint64_t port = 0;
  counted->packets++;
  if (braid_get(packet, dport, &port) != BRAID_OK) return BRAID_FORWARD;
  if (port == 666) { volatile int *nowhere = NULL; *nowhere = 1; }
  if (port == 667) for (volatile int waits = 1; waits;) {}
  if (port == 668) exit(3);
  return port == 25 ? BRAID_DROP(0) : BRAID_FORWARD;
}

static void dump(void *self, braid_dump *into) {
  struct counted *counted = self;
  braid_item packets = {"packets", BRAID_UINT, 0, {counted->packets, 0}};
  into->api->dump_entry(into, "counted", NULL, 0, &packets, 1);
}

static int32_t save(void *self, braid_host *host, braid_saved *into) {
  (void)host;
  into->api->save_bytes(into, self, sizeof(struct counted));
  return 0;
}

static int32_t restore(void *self, braid_host *host, const uint8_t *bytes, size_t length) {
  if (length != sizeof(struct counted)) return braid_fail(host, "other bytes");
  *(struct counted *)self = *(const struct counted *)bytes;
  return 0;
}

static const braid_profile reads_ports = {"l4.sport l4.dport", "", BRAID_MAY_DROP, 0};

BRAID_NF(faulty, .packet = faulty, .create = create, .reasons = "mail", .profile = &reads_ports, .dump = dump,
         .save = save, .restore = restore);
BRAID_NF(forgetful, .packet = faulty, .create = create, .reasons = "mail", .profile = &reads_ports, .dump = dump);

/* Writes what it declares, its source port, and then everything else that it can reach, past all of the
 * interface's checks: the packet's memory is what `braid_change_bytes` returns. */
static int32_t greedy(void *self, braid_packet *packet) {
  size_t length = 0;
  uint8_t *bytes = braid_change_bytes(packet, &length);
  (void)self;
  braid_set(packet, sport, 4242);
  bytes = braid_change_bytes(packet, &length);
  if (!bytes) return BRAID_FAILED;
  /* MAC addresses, the destination, and the last byte of the payload. */
  for (size_t at = 0; at < 12; at++) bytes[at] = 0xee;
  for (size_t at = 30; at < 34; at++) bytes[at] = 0xee;
  bytes[length - 1] = 0xee;
  return BRAID_FORWARD;
}

static const braid_profile writes_sport = {"l4.sport", "l4.sport", 0, 0};

BRAID_NF(greedy, .packet = greedy, .create = create, .profile = &writes_sport);

/* Drops a packet if any memory of the process that can be written holds the word SECRET. */
static int32_t curious(void *self, braid_packet *packet) {
  /* The word itself is not in memory: each byte is one more. */
  static const char next[] = "TFDSFU";
  char line[512];
  int32_t found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  (void)self, (void)packet;
  while (maps && !found && fgets(line, sizeof line, maps)) {
    uintptr_t first, end;
    char rights[5];
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &first, &end, rights) != 3) continue;
    if (rights[0] != 'r' || rights[1] != 'w' || strstr(line, "[stack]")) continue;
    for (const char *at = (const char *)first; at + 6 <= (const char *)end && !found; at++) {
      size_t same = 0;
      while (same < 6 && at[same] + 1 == next[same]) same++;
      found = same == 6;
    }
  }
  if (maps) fclose(maps);
  return found ? BRAID_DROP(0) : BRAID_FORWARD;
}

static const braid_profile reads_payloads = {"payload", "", BRAID_MAY_DROP, 0};

BRAID_NF(curious, .packet = curious, .create = create, .reasons = "secret", .profile = &reads_ports);
BRAID_NF(reader, .packet = curious, .create = create, .reasons = "secret", .profile = &reads_payloads);

/* Says something each second, and for every third packet. */
static void tick(void *self, braid_host *host, void *arg) {
  (void)self, (void)arg;
  braid_log(host, "info", "tick");
}

static int32_t create_ticker(braid_host *host, void **self) {
  int32_t result = create(host, self);
  return result ? result : braid_every(host, 1000000000, tick, NULL);
}

static int32_t ticker(void *self, braid_packet *packet) {
  struct counted *counted = self;
  if (++counted->packets % 3 == 0) braid_log(packet->host, "info", "third");
  return BRAID_FORWARD;
}

BRAID_NF(ticker, .packet = ticker, .create = create_ticker, .profile = &reads_ports);

/* A stream function that crashes at an exclamation mark, and resets at a question mark. */
static int32_t fragile(void *self, braid_host *host, const braid_connection *connection, const braid_data *data) {
  (void)self;
  (void)host;
  (void)connection;
  if (data->bytes[0] == '!') { volatile int *nowhere = NULL; *nowhere = 1; }
  return data->bytes[0] == '?' ? BRAID_RESET(0) : BRAID_FORWARD;
}
BRAID_NF(fragile, .data = fragile, .reasons = "asked");
