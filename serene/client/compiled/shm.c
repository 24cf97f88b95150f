/* A process's side of a shared-memory port (transport/shm.py). serene/embedded/runtime/shm.h, compiled before this,
 * has the rings. Returned errors are negative errnos. */
#include <poll.h>
#include <sys/stat.h>

static int shm_wait(int socket, int timeout_ms) {
    struct pollfd wait = {.fd = socket, .events = POLLIN};
    int ready = poll(&wait, 1, timeout_ms);
    return ready > 0 ? 0 : ready ? -errno : -ETIMEDOUT;
}

/* The memory that the switch hands to the process at the port; -EBUSY where another process has it. In place of the
 * memory may come the errno of a switch that has none. */
static int shm_take(int socket, int timeout_ms, struct shm_memory **memory) {
    uint32_t greeting[2] = {0};
    struct iovec part = {greeting, sizeof greeting};
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd = -1, error = shm_wait(socket, timeout_ms);
    if (error) return error;
    ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (count < 0) return errno == ECONNRESET ? -EBUSY : -errno;
    if (!count) return -EBUSY;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(header), sizeof fd);
    struct stat made;
    if (fd < 0 && greeting[0] == SHM_GREETING && greeting[1] - 1 < 4095) return -(int)greeting[1];
    if (fd < 0 || greeting[0] != SHM_GREETING || greeting[1] != SHM_RING_BYTES || fstat(fd, &made)
        || made.st_size != (off_t)sizeof **memory) {
        if (fd >= 0) close(fd);
        return -EPROTO;
    }
    *memory = mmap(NULL, sizeof **memory, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    error = *memory == MAP_FAILED ? -errno : 0;
    close(fd);
    return error;
}

int shm_attach(struct shm_end *end, const char *path, int timeout_ms) {
    struct sockaddr_un address;
    struct shm_memory *memory;
    socklen_t size = shm_address(path, &address);
    if (!size) return -ENAMETOOLONG;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    int error = connect(fd, (struct sockaddr *)&address, size) ? -errno : shm_take(fd, timeout_ms, &memory);
    if (error) {
        close(fd);
        return error;
    }
    shm_begin(end, memory, fd, 0);
    return 0;
}

/* Whether the switch is still there. */
int shm_attached(struct shm_end *end) {
    if (end->memory) shm_woken(end);
    return end->memory && !end->closed;
}

void shm_detach(struct shm_end *end) { shm_end(end); }

/* Sends `count` frames, which lie end to end and have one size; how many fit into the ring. */
int shm_send_frames(struct shm_end *end, const uint8_t *frames, int count, uint32_t size) {
    int sent = 0;
    for (; sent < count; sent++) {
        struct iovec frame = {(void *)(frames + (size_t)sent * size), size};
        if (!shm_write(end, &frame, 1)) break;
    }
    if (sent) shm_publish(end);
    return sent;
}

/* Receives up to `most` frames into rows, after waiting for the first; how many. A frame longer than a row is lost. */
int shm_receive_frames(struct shm_end *end, uint8_t *rows, uint32_t row_bytes, int most, int64_t *lengths,
                       int timeout_ms) {
    if (!end->memory) {
        shm_wait(-1, timeout_ms);
        return 0;
    }
    if (shm_sleep(end)) {
        shm_wait(end->socket, timeout_ms);
        shm_woken(end);
    }
    int count = 0, outcome;
    const uint8_t *frame;
    uint32_t length;
    while (count < most && (outcome = shm_read(end, &frame, &length))) {
        if (outcome < 0 || length > row_bytes) continue;
        memcpy(rows + (size_t)count * row_bytes, frame, length);
        lengths[count++] = length;
    }
    shm_release(end);
    return count;
}
