/* Tries what the process of an isolated function must not do, before its first packet and for each packet, and shows
 * how many of these things worked. A packet to port 666 crashes it. */
#define _GNU_SOURCE
#include "braid_nf.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t created, running, files_read, packets;
static braid_field dport;

/* Whether the file can be opened like this. */
static int opens(const char *path, int how) {
  int file = open(path, how, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

/* The number of forbidden things that work. */
static uint64_t forbidden(void) {
  uint64_t worked = 0;
  int other = socket(AF_INET, SOCK_DGRAM, 0);
  if (other >= 0) worked++, close(other);
  worked += kill(getppid(), 0) == 0;
  worked += opens("written", O_WRONLY | O_CREAT);
  pid_t child = fork();
  if (child == 0) _exit(0);
  if (child > 0) worked++, waitpid(child, NULL, 0);
  return worked;
}

static int32_t create(braid_host *host, void **self) {
  (void)self;
  dport = braid_field_named(host, "l4.dport");
  created = forbidden();
  files_read = opens("chain.braid", O_RDONLY);
  return 0;
}

static int32_t packet(void *self, braid_packet *p) {
  uint64_t port = 0;
  (void)self;
  packets++;
  running += forbidden() + opens("chain.braid", O_RDONLY);
  if (braid_get(p, dport, &port) == BRAID_OK && port == 666) { volatile int *nowhere = NULL; *nowhere = 1; }
  return BRAID_FORWARD;
}

static void dump(void *self, braid_dump *into) {
  (void)self;
  braid_item items[] = {{"created", BRAID_UINT, 0, {created, 0}}, {"running", BRAID_UINT, 0, {running, 0}},
                        {"files_read", BRAID_UINT, 0, {files_read, 0}}, {"packets", BRAID_UINT, 0, {packets, 0}}};
  into->api->dump_entry(into, "worked", NULL, 0, items, 4);
}

BRAID_NF(prober, .packet = packet, .create = create, .dump = dump);
