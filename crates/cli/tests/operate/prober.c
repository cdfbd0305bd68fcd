/* Tries what the process of an isolated function must not do, before its first packet and for each packet, and shows
 * how many of these things worked. A packet to port 666 crashes it. It does not end when it should. */
#define _GNU_SOURCE
#include "braid_nf.h"
#include <fcntl.h>
#include <signal.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t created, running, files_read, packets;
static int thread_reads;
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
  worked += memfd_create("more", 0) >= 0;
  struct rlimit limit;
  worked += prlimit(getppid(), RLIMIT_NOFILE, NULL, &limit) == 0;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(0, &cores);
  worked += sched_setaffinity(getppid(), sizeof cores, &cores) == 0;
  worked += opens("chain.braid", O_RDWR);
  worked += unlink("chain.braid.bak") == 0;
  pid_t child = fork();
  if (child == 0) _exit(0);
  if (child > 0) worked++, waitpid(child, NULL, 0);
  return worked;
}

/* Tries to open a file again and again. */
static void *read_files(void *arg) {
  (void)arg;
  for (volatile int goes_on = 1; goes_on;) {
    __atomic_store_n(&thread_reads, opens("chain.braid", O_RDONLY), __ATOMIC_RELAXED);
    usleep(1000);
  }
  return NULL;
}

static int32_t create(braid_host *host, void **self) {
  pthread_t thread;
  (void)self;
  dport = braid_field_named(host, "l4.dport");
  created = forbidden();
  files_read = opens("chain.braid", O_RDONLY);
  return pthread_create(&thread, NULL, read_files, NULL) == 0 ? 0 : braid_fail(host, "no thread");
}

static int32_t packet(void *self, braid_packet *p) {
  uint64_t port = 0;
  (void)self;
  packets++;
  running += forbidden() + opens("chain.braid", O_RDONLY);
  pthread_t thread;
  running += pthread_create(&thread, NULL, read_files, NULL) == 0;
  usleep(5000);
  running += __atomic_load_n(&thread_reads, __ATOMIC_RELAXED);
  if (braid_get(p, dport, &port) == BRAID_OK && port == 666) { volatile int *nowhere = NULL; *nowhere = 1; }
  return BRAID_FORWARD;
}

static void dump(void *self, braid_dump *into) {
  (void)self;
  braid_item items[] = {{"created", BRAID_UINT, 0, {created, 0}}, {"running", BRAID_UINT, 0, {running, 0}},
                        {"files_read", BRAID_UINT, 0, {files_read, 0}}, {"packets", BRAID_UINT, 0, {packets, 0}}};
  into->api->dump_entry(into, "worked", NULL, 0, items, 4);
}

/* Does not want to end. */
static void destroy(void *self) {
  (void)self;
  for (volatile int stays = 1; stays;) usleep(1000);
}

BRAID_NF(prober, .packet = packet, .create = create, .destroy = destroy, .dump = dump);
