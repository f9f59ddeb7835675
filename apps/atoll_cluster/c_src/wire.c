// SPDX-License-Identifier: Apache-2.0
/* wire.c - a long network path in user space: delay, jitter, loss and rate
 * between two network namespaces.
 *
 *   wire [KEY=VALUE ...]
 *
 * It makes two namespaces that have no names, each with one TUN interface, and
 * carries IPv4 packets from either to the other. When all is up it says
 *
 *   ready FD ADDRESS FD ADDRESS
 *
 * where /proc/PID/fd/FD of its process is the namespace of that end, for
 * nsenter --net=. It ends at "quit", at the end of its standard input, and with
 * its parent. Namespaces and interfaces belong to it and to whatever was started
 * within them: nothing stays behind in the system's books, however it ends.
 *
 *   delay_us=N    how long a packet takes, one way
 *   jitter_us=N   up to so much longer, drawn for each packet; order is kept
 *   loss=P        the share of packets that get lost, 0 to 1, drawn for each
 *   rate=N        bytes that leave an end in a second; 0: as many as come
 *   buffer=N      bytes that may wait for the rate; what does not fit is dropped
 *   mtu=N         of the interfaces                        (at the start only)
 *   seed=N        of what is drawn                         (at the start only)
 *   run=PORT:PROGRAM   runs this in each end, and is ready when it listens on
 *                 that port; it ends with the wire         (at the start only)
 *
 * A line KEY=VALUE on standard input changes one while it runs, for the packets
 * that come from then on. It is answered by "ok", or by "error: " and a sentence.
 * The line "counters" is answered by one with NAME VALUE pairs, the first end's
 * after "end 0", the second's after "end 1". What it cannot do at the start it
 * says in one sentence on standard error, and exits with 1; with 2 where this system,
 * or this user, can have no wire at all.
 *
 * How. One thread for each direction reads packets into a ring, stamps them with
 * the time they are due, and writes them to the other end's TUN then; what TCP
 * does there on their arrival runs in that thread. The kernel hands over and
 * takes back segments of up to 64 KiB that stand for many packets (IFF_VNET_HDR,
 * TSO), so that a packet costs little while the MTU, and with it TCP's idea of
 * a window, stays what it is. Loss and rate are those of the packets, not of the
 * large segments: one that loses some is cut into what is left of it, and at a
 * low rate into pieces of a millisecond.
 *
 * Every queue has an end. What waits for the rate is bounded by buffer (dropped:
 * "full"), what is on its way by the ring (dropped: "crowded"), what the kernel
 * holds for a thread that did not get to run by the interface's queue (dropped:
 * "unread").
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ENDS = 2,
    BATCH = 32,                  /* packets read, or written, before the other */
    MAX_PACKET = 65536 + 256,    /* a large segment with its headers */
    MAX_SEGMENTS = 2048,         /* packets that one may stand for */
    TUN_QUEUE = 8192,            /* packets the kernel holds for us */
    PIECE_NS = 1000000,          /* how long a piece may take at a low rate */
    GUEST_MS = 10000,           /* until what run= started listens */
};
#define RING_BYTES ((size_t)256 << 20)
/* The ring begins anew, in memory that is still in the caches, once so much is free at
 * its beginning. Until what is held now is gone no more can be used, however much
 * comes meanwhile: that is why it is this much, and some times what is held. */
#define RING_WARM ((size_t)16 << 20)
#define RING_GROWTH 4
#define IFNAME "wire"
#define VNET ((size_t)sizeof(struct virtio_net_hdr))

static const char *const address[ENDS] = {"10.0.0.1", "10.0.0.2"};

struct record {              /* a packet in the ring; its data follows */
    uint64_t due;            /* ns, CLOCK_MONOTONIC */
    uint32_t span;           /* bytes of the ring that it takes */
    uint32_t len;            /* bytes of data: virtio header, IP packet */
    uint32_t packets;        /* that it stands for */
};

struct counters {            /* packets, where nothing else is said */
    _Atomic uint64_t taken, taken_bytes;    /* what came from this end */
    _Atomic uint64_t given, given_bytes;    /* what reached the other one */
    _Atomic uint64_t lost;                  /* by chance */
    _Atomic uint64_t full;                  /* no room to wait for the rate */
    _Atomic uint64_t crowded;               /* no room in the ring */
    _Atomic uint64_t strange;               /* not for the other end */
    _Atomic uint64_t refused;               /* the other end's kernel took it not */
    _Atomic uint64_t late_us, late_max_us;  /* sum and most, after they were due */
    _Atomic uint64_t held_max_bytes;        /* most that was in the ring */
};

/* The ring: records from head to tail, in the order in which they are due. If tail
 * is before head they go on from the beginning where they have come to wrap. */
struct end {
    int index, fd, ns;
    uint32_t addr;           /* network order */
    char *ring;
    size_t head, tail, wrap, held;
    uint64_t free_at;        /* when the rate lets the next byte leave, ns */
    uint64_t last_due;
    uint64_t random;
    struct counters counters;
    pthread_t thread;
    pid_t guest;
};

static struct end ends[ENDS];
static _Atomic uint64_t delay_ns, jitter_ns, rate, buffer = 1 << 20;
static _Atomic uint64_t loss_32;            /* probability times 2^32 */
static unsigned long opt_mtu = 1500, opt_seed = 1, opt_port;
static char *opt_run;

static void leave(int status, const char *format, va_list args)
{
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    _exit(status);
}

static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    leave(1, format, args);
}

/* For what no setting helps against: this system, or this user, cannot have a wire. */
static void unable(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    leave(2, format, args);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* -------------------------------------------------------------- settings */

static int whole(const char *text, uint64_t max, uint64_t *value)
{
    char *rest;
    errno = 0;
    *value = strtoull(text, &rest, 10);
    return *text >= '0' && *text <= '9' && !*rest && !errno && *value <= max;
}

/* NULL, or what is wrong. */
static const char *set(char *pair, int starting)
{
    uint64_t n;
    char *text = strchr(pair, '='), *rest;
    if (!text) return "a setting is KEY=VALUE";
    *text++ = 0;
    if (!strcmp(pair, "delay_us") || !strcmp(pair, "jitter_us")) {
        if (!whole(text, 60000000, &n)) return "delay_us and jitter_us are whole numbers up to 60000000";
        *(*pair == 'd' ? &delay_ns : &jitter_ns) = n * 1000;
    } else if (!strcmp(pair, "loss")) {
        double p = strtod(text, &rest);
        if (rest == text || *rest || !(p >= 0 && p <= 1)) return "loss is a number from 0 to 1";
        loss_32 = (uint64_t)(p * 4294967296.0);
    } else if (!strcmp(pair, "rate")) {
        if (!whole(text, 125000000000u, &n)) return "rate is a whole number of bytes up to 125000000000";
        rate = n;
    } else if (!strcmp(pair, "buffer")) {
        if (!whole(text, RING_BYTES / 2, &n)) return "buffer is a whole number of bytes up to 134217728";
        buffer = n;
    } else if (!starting) {
        return "there is no such setting, or it cannot be changed any more";
    } else if (!strcmp(pair, "mtu")) {
        if (!whole(text, 65000, &n) || n < 576) return "mtu is a whole number from 576 to 65000";
        opt_mtu = n;
    } else if (!strcmp(pair, "seed")) {
        if (!whole(text, UINT64_MAX, &n)) return "seed is a whole number";
        opt_seed = n;
    } else if (!strcmp(pair, "run")) {
        opt_run = strchr(text, ':');
        if (!opt_run) return "run is PORT:PROGRAM";
        *opt_run++ = 0;
        if (!whole(text, 65535, &n) || n == 0) return "the port of run is a whole number from 1 to 65535";
        opt_port = n;
    } else {
        return "there is no such setting";
    }
    return NULL;
}

/* ------------------------------------------------------------- the ends */

static void interface(int s, unsigned long request, struct ifreq *r, const char *what)
{
    if (ioctl(s, request, r) < 0)
        die("The interface %s of an end cannot be given its %s: %s.", r->ifr_name, what, strerror(errno));
}

static void up(int s, const char *name)
{
    struct ifreq r = {0};
    strcpy(r.ifr_name, name);
    interface(s, SIOCGIFFLAGS, &r, "flags");
    r.ifr_flags |= IFF_UP | IFF_RUNNING;
    interface(s, SIOCSIFFLAGS, &r, "flags");
}

static void set_address(int s, unsigned long request, struct ifreq *r, const char *text, const char *what)
{
    struct sockaddr_in sin = {.sin_family = AF_INET};
    inet_pton(AF_INET, text, &sin.sin_addr);
    memcpy(&r->ifr_addr, &sin, sizeof sin);
    interface(s, request, r, what);
}

/* Of the namespace of the calling thread. */
static void set_kernel(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;          /* a kernel without it has nothing to switch off */
    if (write(fd, "1", 1) != 1) die("%s cannot be set in an end: %s.", path, strerror(errno));
    close(fd);
}

/* Makes a namespace of which only this process knows, and its interface. The calling
 * thread is in it afterwards. */
static void make_end(struct end *e, int index)
{
    e->index = index;
    inet_pton(AF_INET, address[index], &e->addr);
    if (unshare(CLONE_NEWNET) < 0) {
        if (errno == EPERM) unable("A wire needs root: nobody else may make network namespaces here.");
        unable("This system makes no network namespace: %s.", strerror(errno));
    }
    e->ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (e->ns < 0) die("The namespaces of a process are not to be found in /proc: %s.", strerror(errno));

    /* IPv6's searching for routers would be in the counters; and a connection is not to
     * begin with what an earlier one remembered of the path. All else is as the host's. */
    set_kernel("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    set_kernel("/proc/sys/net/ipv4/tcp_no_metrics_save");

    e->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (e->fd < 0) unable("/dev/net/tun cannot be opened, which a wire is made of: %s.", strerror(errno));
    struct ifreq r = {0};
    strcpy(r.ifr_name, IFNAME);
    r.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    if (ioctl(e->fd, TUNSETIFF, &r) < 0)
        unable("/dev/net/tun makes no interface, which a wire is made of: %s.", strerror(errno));
    if (ioctl(e->fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO_ECN) < 0)
        unable("The kernel's TUN does not take large segments: %s.", strerror(errno));

    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) die("An end has no sockets: %s.", strerror(errno));
    r.ifr_mtu = (int)opt_mtu;
    interface(s, SIOCSIFMTU, &r, "MTU");
    r.ifr_qlen = TUN_QUEUE;
    interface(s, SIOCSIFTXQLEN, &r, "queue");
    set_address(s, SIOCSIFADDR, &r, address[index], "address");
    set_address(s, SIOCSIFNETMASK, &r, "255.255.255.252", "netmask");
    up(s, IFNAME);
    up(s, "lo");
    close(s);

    e->ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (e->ring == MAP_FAILED) die("There is no memory for a wire: %s.", strerror(errno));
    e->random = (opt_seed + 1) * 0x9E3779B97F4A7C15u ^ (uint64_t)(index + 1) << 40;
}

/* In the namespace of the calling thread; dies with this process. */
static void run_guest(struct end *e)
{
    pid_t parent = getpid();
    e->guest = fork();
    if (e->guest < 0) die("%s cannot be started in an end: %s.", opt_run, strerror(errno));
    if (e->guest == 0) {
        int null = open("/dev/null", O_RDWR);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || null < 0) _exit(1);
        for (int fd = 0; fd < 3; fd++) dup2(null, fd);
        execl(opt_run, opt_run, (char *)NULL);
        _exit(1);
    }
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)opt_port), .sin_addr = {htonl(INADDR_LOOPBACK)}
    };
    for (int ms = 0; ms < GUEST_MS; ms++) {
        int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (s < 0) die("An end has no sockets: %s.", strerror(errno));
        int connected = connect(s, (struct sockaddr *)&to, sizeof to) == 0;
        close(s);
        if (connected) return;
        if (waitpid(e->guest, NULL, WNOHANG)) die("%s cannot be started in an end, or ends at once.", opt_run);
        usleep(1000);
    }
    die("%s does not listen on port %lu of an end.", opt_run, opt_port);
}

static void end_guests(void)
{
    for (int i = 0; i < ENDS; i++)
        if (ends[i].guest > 0) {
            kill(ends[i].guest, SIGKILL);
            waitpid(ends[i].guest, NULL, 0);
        }
}

/* -------------------------------------------------------------- the ring */

/* Room for a packet of any size, in one piece; NULL if there is none. */
static struct record *reserve(struct end *e)
{
    const size_t need = sizeof(struct record) + MAX_PACKET;
    if (e->held == 0) e->head = e->tail = 0;
    if (e->tail >= e->head) {
        int warm = e->head > RING_WARM + RING_GROWTH * e->held;
        if (warm || (RING_BYTES - e->tail < need && e->head > need)) {
            e->wrap = e->tail;
            e->tail = 0;
        } else {
            return RING_BYTES - e->tail >= need ? (struct record *)(e->ring + e->tail) : NULL;
        }
    }
    return e->head - e->tail > need ? (struct record *)(e->ring + e->tail) : NULL;
}

static void commit(struct end *e, struct record *r, uint64_t due, size_t len, uint32_t packets)
{
    /* What was sent first arrives first, whatever was drawn for it. */
    if (due < e->last_due) due = e->last_due;
    e->last_due = due;
    r->due = due;
    r->len = (uint32_t)len;
    r->packets = packets;
    r->span = (uint32_t)((sizeof *r + len + 63) & ~(size_t)63);
    e->tail += r->span;
    e->held += r->span;
    if (e->held > e->counters.held_max_bytes) e->counters.held_max_bytes = e->held;
}

static struct record *first(struct end *e)
{
    if (e->held == 0) return NULL;
    if (e->head > e->tail && e->head == e->wrap) e->head = 0;
    return (struct record *)(e->ring + e->head);
}

static void release(struct end *e, struct record *r)
{
    e->head += r->span;
    e->held -= r->span;
}

/* --------------------------------------------------------------- packets */

/* What one read gave, less its data: of a large segment where it can be cut. */
struct packet {
    size_t len;              /* with the virtio header */
    size_t headers;          /* bytes of IP and TCP headers; 0: not to be cut */
    size_t segment;          /* bytes of payload in each of its packets */
    unsigned count;          /* packets */
};

static uint16_t folded(uint32_t sum)
{
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

static uint32_t sum16(const void *data, size_t len)
{
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < len; i += 2) {
        uint16_t word;
        memcpy(&word, (const char *)data + i, 2);
        sum += word;
    }
    return sum;
}

/* 0 if it is not for the other end. */
static int parse(struct end *e, const char *data, size_t len, struct packet *p)
{
    struct virtio_net_hdr vnet;
    struct iphdr ip;
    *p = (struct packet){.len = len, .count = 1};
    if (len < VNET + sizeof ip) return 0;
    memcpy(&vnet, data, VNET);
    memcpy(&ip, data + VNET, sizeof ip);
    if (ip.version != 4 || ip.daddr != ends[1 - e->index].addr) return 0;
    if ((vnet.gso_type & ~VIRTIO_NET_HDR_GSO_ECN) == VIRTIO_NET_HDR_GSO_TCPV4 && vnet.gso_size) {
        struct tcphdr tcp;
        size_t ip_len = (size_t)ip.ihl * 4;
        if (ip_len < sizeof ip || len < VNET + ip_len + sizeof tcp) return 0;
        memcpy(&tcp, data + VNET + ip_len, sizeof tcp);
        size_t headers = ip_len + (size_t)tcp.doff * 4;
        if (len <= VNET + headers) return 1;
        size_t count = (len - VNET - headers + vnet.gso_size - 1) / vnet.gso_size;
        if (count > MAX_SEGMENTS) return 1;
        p->headers = headers;
        p->segment = vnet.gso_size;
        p->count = (unsigned)count;
    }
    return 1;
}

static size_t packet_bytes(const struct packet *p, unsigned i)
{
    if (!p->headers) return p->len - VNET;
    size_t payload = p->len - VNET - p->headers, from = i * p->segment;
    return p->headers + (payload - from < p->segment ? payload - from : p->segment);
}

/* Makes `to' of so many packets of a large segment, and says how long it is. The
 * kernel that takes it looks at no TCP checksum: what counts is that of the
 * pseudo header, which it completes if it sends it on. */
static size_t cut(char *to, const char *from, const struct packet *p, unsigned i, unsigned count)
{
    struct virtio_net_hdr vnet;
    struct iphdr ip;
    struct tcphdr tcp;
    size_t payload = p->len - VNET - p->headers, at = i * p->segment, len = count * p->segment;
    if (at + len > payload) len = payload - at;
    memcpy(&vnet, from, VNET);
    memcpy(to + VNET, from + VNET, p->headers);
    memcpy(to + VNET + p->headers, from + VNET + p->headers + at, len);

    vnet.hdr_len = (uint16_t)p->headers;
    if (len <= p->segment) {
        vnet.gso_type = VIRTIO_NET_HDR_GSO_NONE;
        vnet.gso_size = 0;
    }
    memcpy(to, &vnet, VNET);

    memcpy(&ip, to + VNET, sizeof ip);
    size_t ip_len = (size_t)ip.ihl * 4;
    ip.tot_len = htons((uint16_t)(p->headers + len));
    ip.id = htons((uint16_t)(ntohs(ip.id) + i));
    ip.check = 0;
    memcpy(to + VNET, &ip, sizeof ip);
    ip.check = (uint16_t)~folded(sum16(to + VNET, ip_len));
    memcpy(to + VNET, &ip, sizeof ip);

    memcpy(&tcp, to + VNET + ip_len, sizeof tcp);
    tcp.seq = htonl(ntohl(tcp.seq) + (uint32_t)at);
    if (at + len < payload) tcp.fin = tcp.psh = 0;
    if (at > 0) tcp.res2 &= 1;   /* CWR is the first one's */
    tcp.check = folded(sum16(&ip.saddr, 8) + htons(IPPROTO_TCP) + htons((uint16_t)(p->headers - ip_len + len)));
    memcpy(to + VNET + ip_len, &tcp, sizeof tcp);
    return VNET + p->headers + len;
}

static uint64_t draw(struct end *e)
{
    e->random ^= e->random << 13;
    e->random ^= e->random >> 7;
    e->random ^= e->random << 17;
    return e->random >> 32;
}

/* ------------------------------------------------------------- data path */

struct piece { unsigned first, count; uint64_t due; };

/* What becomes of each packet; those that go on, in pieces that stay together. */
static unsigned fates(struct end *e, const struct packet *p, uint64_t now, struct piece *pieces)
{
    uint64_t loss = loss_32, bytes_per_s = rate, room = buffer;
    uint64_t delay = delay_ns, jitter = jitter_ns, piece_end = 0;
    unsigned n = 0;
    int open = 0;
    /* 32 bits of each are not enough: above 4.29 s nanoseconds have more. */
    if (jitter) delay += (uint64_t)((unsigned __int128)draw(e) * jitter >> 32);
    for (unsigned i = 0; i < p->count; i++) {
        size_t bytes = packet_bytes(p, i);
        uint64_t leave = now;
        if (loss && draw(e) < loss) {
            e->counters.lost++;
            open = 0;
            continue;
        }
        if (bytes_per_s) {
            if (e->free_at < now) e->free_at = now;
            double waiting = (double)(e->free_at - now) * (double)bytes_per_s / 1e9;
            if (waiting > 0 && waiting + (double)bytes > (double)room) {
                e->counters.full++;
                open = 0;
                continue;
            }
            leave = e->free_at += bytes * 1000000000u / bytes_per_s;
            if (leave > piece_end) open = 0;
        }
        if (!open) {
            pieces[n++] = (struct piece){.first = i};
            piece_end = leave + PIECE_NS;
            open = 1;
        }
        pieces[n - 1].count++;
        pieces[n - 1].due = leave + delay;
    }
    return n;
}

/* Reads one packet. 1: there was one, whatever became of it; 0: none waits. */
static int take(struct end *e)
{
    static _Thread_local char copy[MAX_PACKET];
    static _Thread_local struct piece pieces[MAX_SEGMENTS];
    struct counters *c = &e->counters;
    struct record *r = reserve(e);
    char *data = r ? (char *)(r + 1) : copy;
    struct packet p;
    ssize_t n = read(e->fd, data, MAX_PACKET);
    if (n <= 0) {
        if (n < 0 && errno != EAGAIN && errno != EINTR) die("An end can be read no more: %s.", strerror(errno));
        return 0;
    }
    if (!parse(e, data, (size_t)n, &p)) {
        c->strange++;
        return 1;
    }
    c->taken += p.count;
    c->taken_bytes += p.len - VNET + (p.count - 1) * p.headers;
    if (!r) {
        c->crowded += p.count;
        return 1;
    }
    /* Not the time at which this thread last looked: it may have waited for a processor since, and
     * the packet would be due before it has been on its way for so long. */
    unsigned count = fates(e, &p, now_ns(), pieces);
    if (count == 1 && pieces[0].count == p.count) {
        commit(e, r, pieces[0].due, p.len, p.count);
        return 1;
    }
    if (count) memcpy(copy, data, p.len);
    for (unsigned i = 0; i < count; i++) {
        if (!(r = reserve(e))) {
            c->crowded += pieces[i].count;
            continue;
        }
        size_t len = cut((char *)(r + 1), copy, &p, pieces[i].first, pieces[i].count);
        commit(e, r, pieces[i].due, len, pieces[i].count);
    }
    return 1;
}

/* Writes what is due; returns when the next will be, or UINT64_MAX. */
static uint64_t give(struct end *e, uint64_t now)
{
    struct counters *c = &e->counters;
    struct record *r;
    for (int left = BATCH; (r = first(e)); left--) {
        if (r->due > now || !left) return r->due;
        uint64_t late = (now - r->due) / 1000;
        c->late_us += late * r->packets;
        if (late > c->late_max_us) c->late_max_us = late;
        if (write(ends[1 - e->index].fd, r + 1, r->len) < 0) {
            c->refused += r->packets;
        } else {
            c->given += r->packets;
            c->given_bytes += r->len - VNET;
        }
        release(e, r);
    }
    return UINT64_MAX;
}

static void *carry(void *arg)
{
    struct end *e = arg;
    prctl(PR_SET_TIMERSLACK, 1);
    /* If it may not, it is only later now and then. */
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -10);
    for (;;) {
        uint64_t now = now_ns();
        int got = 0;
        while (got < BATCH && take(e)) got++;
        uint64_t next = give(e, now);
        if (got) continue;
        now = now_ns();
        if (next <= now) continue;
        struct timespec t, *wait = NULL;
        if (next != UINT64_MAX) {
            t.tv_sec = (time_t)((next - now) / 1000000000u);
            t.tv_nsec = (long)((next - now) % 1000000000u);
            wait = &t;
        }
        struct pollfd p = {.fd = e->fd, .events = POLLIN};
        ppoll(&p, 1, wait, NULL);
    }
    return NULL;
}

/* --------------------------------------------------------------- control */

/* What the kernel has dropped because nobody read it in time. */
static unsigned long unread(struct end *e)
{
    char line[512];
    unsigned long n = 0;
    if (setns(e->ns, CLONE_NEWNET) < 0) return 0;
    FILE *f = fopen("/proc/thread-self/net/dev", "re");
    if (!f) return 0;
    while (fgets(line, sizeof line, f))
        /* What the kernel sends is what we read: bytes packets errs drop. */
        if (sscanf(line, " " IFNAME ": %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %lu", &n) == 1) break;
    fclose(f);
    return n;
}

static void print_counters(void)
{
    for (int i = 0; i < ENDS; i++) {
        struct counters *c = &ends[i].counters;
        printf("%send %d taken %lu taken_bytes %lu given %lu given_bytes %lu lost %lu full %lu crowded %lu "
               "strange %lu refused %lu unread %lu late_us %lu late_max_us %lu held_max_bytes %lu",
               i ? " " : "", i, c->taken, c->taken_bytes, c->given, c->given_bytes, c->lost, c->full, c->crowded,
               c->strange, c->refused, unread(&ends[i]), c->late_us, c->late_max_us, c->held_max_bytes);
    }
    printf("\n");
}

static void command(char *line)
{
    line[strcspn(line, "\n")] = 0;
    if (!strcmp(line, "quit")) {
        end_guests();
        _exit(0);
    }
    if (!strcmp(line, "counters")) {
        print_counters();
    } else {
        const char *wrong = set(line, 0);
        printf(wrong ? "error: %s\n" : "ok\n", wrong);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    /* The end of standard input tells too, but not a wire that was stopped. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 1; i < argc; i++) {
        const char *wrong = set(argv[i], 1);
        if (wrong) die("The setting %s is wrong: %s.", argv[i], wrong);
    }
    for (int i = 0; i < ENDS; i++) {
        make_end(&ends[i], i);
        if (opt_run) run_guest(&ends[i]);
    }
    for (int i = 0; i < ENDS; i++)
        if (pthread_create(&ends[i].thread, NULL, carry, &ends[i])) die("A wire's threads cannot be started.");
    printf("ready %d %s %d %s\n", ends[0].ns, address[0], ends[1].ns, address[1]);
    fflush(stdout);
    char line[256];
    while (fgets(line, sizeof line, stdin)) command(line);
    end_guests();
    _exit(0);
}
