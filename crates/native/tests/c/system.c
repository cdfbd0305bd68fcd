/* Functions that ask the system for things. */
#define _GNU_SOURCE
#include <braid_nf.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Counts what it gets. FAR names a file outside of the chain's folder. */
typedef struct {
  braid_host *host;
} asker;

static void note(asker *a, const char *what, int works) {
  char name[64] = "no ";
  strcpy(works ? name : name + 3, what);
  braid_count(a->host, braid_counter(a->host, name), 1);
}

static int opens(const char *path, int flags) {
  int file = open(path, flags, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

static void *idle(void *arg) { return arg; }

static int starts_thread(void) {
  pthread_t thread;
  return pthread_create(&thread, NULL, idle, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

static int forks(void) {
  pid_t child = fork();
  if (child == 0) _exit(0);
  return child > 0 && waitpid(child, NULL, 0) == child;
}

/* Whether a connection may be tried. Nobody listens there. */
static int connects(void) {
  struct sockaddr_in to = {AF_INET, htons(9), {htonl(INADDR_LOOPBACK)}, {0}};
  int s = socket(AF_INET, SOCK_STREAM, 0);
  int done = connect(s, (struct sockaddr *)&to, sizeof to) == 0 || errno == ECONNREFUSED;
  close(s);
  return done;
}

static int has_large_memory(void) {
  size_t size = 64 << 20;
  char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return bytes != MAP_FAILED && munmap(bytes, size) == 0;
}

static int32_t create(braid_host *host, void **self) {
  asker *a = calloc(1, sizeof *a);
  a->host = host;
  uint64_t needs_far = 0;
  braid_config(host, "needs_far", &needs_far);
  if (needs_far && !opens(getenv("FAR"), O_RDONLY)) {
    free(a);
    return braid_fail(host, "its file cannot be read");
  }
  *self = a;
  return 0;
}

static int32_t packet(void *self, braid_packet *p) {
  asker *a = self;
  struct timespec now;
  a->host = p->host;
  note(a, "time", clock_gettime(CLOCK_REALTIME, &now) == 0);
  note(a, "memory", has_large_memory());
  note(a, "thread", starts_thread());
  note(a, "near file", opens("near.txt", O_RDONLY));
  note(a, "library", opens("/usr/bin/env", O_RDONLY));
  note(a, "far file", opens(getenv("FAR"), O_RDONLY));
  note(a, "new file", opens("new.txt", O_RDWR | O_CREAT));
  note(a, "process", forks());
  note(a, "program", system("true") == 0);
  note(a, "TCP", connects());
  return BRAID_FORWARD;
}

static void destroy(void *self) { free(self); }

BRAID_NF(asker, .create = create, .packet = packet, .destroy = destroy);

/* A function that leaves a thread running when it goes. */
static void *sleeper(void *arg) {
  pause();
  return arg;
}

static int32_t lasting_create(braid_host *host, void **self) {
  pthread_t thread;
  *self = NULL;
  return pthread_create(&thread, NULL, sleeper, NULL) == 0 ? 0 : braid_fail(host, "no thread");
}

static int32_t forward(void *self, braid_packet *p) {
  (void)self, (void)p;
  return BRAID_FORWARD;
}

BRAID_NF(lasting, .create = lasting_create, .packet = forward);
