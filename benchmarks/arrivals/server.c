/* A server that streams tokens by a fixed schedule and logs when each of them left.

       server LOG TTFT_US GAP_US

   prints its port and answers until SIGTERM; then it writes LOG, a JSON object a line for each
   whole reply: `id` (of the reply), `tag` (the request's X-Request-Id), `received_ns` (by the
   kernel), `sent_ns` (one a token, taken just before its send). Times are CLOCK_MONOTONIC.

   Token n is due TTFT + n * GAP after the request was received. All bytes are made beforehand; one
   thread waits in epoll for requests and for a timer that is set to the next due time. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TOKENS = 4096, MOST_STREAMS = 1024, REQUEST_SIZE = 65536, EVENT_SIZE = 512 };
enum { ID_DIGITS = 8, TAG_SIZE = 64, EVENTS = 256 };
#define ID_PLACE "00000000"
#define NEVER INT64_MAX

typedef struct {
    char bytes[EVENT_SIZE];
    int size, id_at;
} Event;

typedef struct Reply {
    struct Reply *next;
    int number, tokens, sent;
    char tag[TAG_SIZE];
    int64_t received_ns;
    int64_t sent_ns[];
} Reply;

typedef struct {
    int socket;
    size_t held;
    int64_t received_ns, due_ns;
    bool chat;
    Reply *reply;
    char request[REQUEST_SIZE];
} Stream;

static int64_t ttft_ns, gap_ns;
static Event events[2][MOST_TOKENS]; /* [chat][token] */
static Event closing;
static Stream *streams[MOST_STREAMS];
static int open_streams, asked, poller;
static Reply *first_reply, **next_reply = &first_reply;
static volatile sig_atomic_t told_to_stop;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* What is sent. */

static void frame(Event *event, const char *text) {
    event->size = snprintf(event->bytes, EVENT_SIZE, "%zx\r\n%s\r\n", strlen(text), text);
    const char *place = strstr(event->bytes, ID_PLACE);
    event->id_at = place ? (int)(place - event->bytes) : -1;
}

static void make_events(void) {
    char text[EVENT_SIZE - 16];
    for (int n = 0; n < MOST_TOKENS; n++) {
        snprintf(text, sizeof text,
                 "data: {\"id\":\"chatcmpl-" ID_PLACE "\",\"object\":\"chat.completion.chunk\","
                 "\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" w%d\"},"
                 "\"finish_reason\":null}],\"usage\":{\"prompt_tokens\":8,\"total_tokens\":%d,"
                 "\"completion_tokens\":%d}}\n\n", n, n + 9, n + 1);
        frame(&events[true][n], text);
        snprintf(text, sizeof text,
                 "data: {\"id\":\"cmpl-" ID_PLACE "\",\"object\":\"text_completion\","
                 "\"model\":\"bench\",\"choices\":[{\"index\":0,\"text\":\" w%d\","
                 "\"finish_reason\":null}]}\n\n", n);
        frame(&events[false][n], text);
    }
    frame(&closing, "data: {\"id\":\"" ID_PLACE "\",\"choices\":[{\"index\":0,\"delta\":{},"
                    "\"finish_reason\":\"length\"}]}\n\n");
}

static char *append(char *to, const Event *event, int number) {
    char digits[ID_DIGITS + 1];
    memcpy(to, event->bytes, event->size);
    if (event->id_at >= 0) {
        snprintf(digits, sizeof digits, "%0*d", ID_DIGITS, number);
        memcpy(to + event->id_at, digits, ID_DIGITS);
    }
    return to + event->size;
}

static char *append_text(char *to, const char *text) {
    size_t size = strlen(text);
    memcpy(to, text, size);
    return to + size;
}

static char *append_end(char *to, const Stream *stream) {
    Event usage;
    char text[256];
    int tokens = stream->reply->tokens;
    snprintf(text, sizeof text,
             "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"total_tokens\":%d,"
             "\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", tokens + 8, tokens);
    frame(&usage, text);
    if (stream->chat) /* a further choice without text is a gap to some clients of completions */
        to = append(to, &closing, stream->reply->number);
    to = append(to, &usage, 0);
    return append_text(to, "0\r\n\r\n");
}

/* Connections. */

static void close_stream(int place) {
    close(streams[place]->socket);
    if (streams[place]->reply)
        streams[place]->reply->sent = 0; /* not whole: not logged */
    free(streams[place]);
    streams[place] = streams[--open_streams];
}

static bool send_all(Stream *stream, const char *bytes, size_t size) {
    return send(stream->socket, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Return false where the client is gone, or has left its socket unread until it was full. */
static bool send_token(Stream *stream) {
    char bytes[4 * EVENT_SIZE], *end = bytes;
    Reply *reply = stream->reply;
    if (reply->sent == 0)
        end = append_text(end, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n");
    end = append(end, &events[stream->chat][reply->sent], reply->number);
    if (reply->sent + 1 == reply->tokens)
        end = append_end(end, stream);
    reply->sent_ns[reply->sent++] = clock_ns(CLOCK_MONOTONIC);
    if (!send_all(stream, bytes, end - bytes))
        return false;
    stream->due_ns += gap_ns;
    if (reply->sent == reply->tokens) {
        stream->reply = NULL;
        stream->due_ns = NEVER;
    }
    return true;
}

static void send_due(void) {
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    for (int place = 0; place < open_streams; place++) {
        Stream *stream = streams[place];
        if (stream->due_ns > now_ns)
            continue;
        if (!send_token(stream)) {
            stream->due_ns = NEVER;
            shutdown(stream->socket, SHUT_RDWR); /* epoll reports it, and it is closed there */
        }
        now_ns = clock_ns(CLOCK_MONOTONIC);
    }
}

static void set_timer(int timer) {
    int64_t due_ns = NEVER;
    for (int place = 0; place < open_streams; place++)
        if (streams[place]->due_ns < due_ns)
            due_ns = streams[place]->due_ns;
    struct itimerspec when = {0}; /* zero: never */
    if (due_ns != NEVER) {
        when.it_value.tv_sec = due_ns / 1000000000;
        when.it_value.tv_nsec = due_ns % 1000000000;
    }
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Requests. */

/* Return what follows `"key":` in a JSON body, as far as this server needs to know JSON. */
static const char *value_of(const char *body, const char *key) {
    const char *found = strstr(body, key);
    return found ? found + strlen(key) + strspn(found + strlen(key), " :") : "";
}

static bool answer_json(Stream *stream, const char *status, const char *json) {
    char bytes[1024];
    int size = snprintf(bytes, sizeof bytes,
                        "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\n\r\n%s", status, strlen(json), json);
    return send_all(stream, bytes, size);
}

static void begin(Stream *stream, const char *head, const char *body) {
    int tokens = atoi(value_of(body, "\"max_tokens\""));
    tokens = tokens < 1 ? 1 : tokens > MOST_TOKENS ? MOST_TOKENS : tokens;
    Reply *reply = calloc(1, sizeof *reply + tokens * sizeof *reply->sent_ns);
    if (!reply)
        fail("calloc");
    reply->number = asked++;
    reply->tokens = tokens;
    reply->received_ns = stream->received_ns;
    const char *tag = strcasestr(head, "\r\nx-request-id: ");
    if (tag)
        sscanf(tag + 16, "%63[A-Za-z0-9-]", reply->tag);
    *next_reply = reply;
    next_reply = &reply->next;
    stream->reply = reply;
    stream->due_ns = stream->received_ns + ttft_ns;
}

static bool answer(Stream *stream, const char *head, const char *body) {
    const char *path = strchr(head, ' ') + 1;
    bool asks = strncmp(head, "POST", 4) == 0;
    stream->chat = strncmp(path, "/v1/chat/completions ", 21) == 0;
    if (asks && (stream->chat || strncmp(path, "/v1/completions ", 16) == 0)) {
        if (strncmp(value_of(body, "\"stream\""), "true", 4) != 0)
            return answer_json(stream, "200 OK",
                               "{\"id\":\"probe\",\"choices\":[{\"index\":0,\"text\":\"w\","
                               "\"message\":{\"role\":\"assistant\",\"content\":\"w\"}}]}");
        begin(stream, head, body);
        return true;
    }
    if (strncmp(path, "/health ", 8) == 0)
        return answer_json(stream, "200 OK", "{}");
    if (strncmp(path, "/version ", 9) == 0)
        return answer_json(stream, "200 OK", "{\"version\":\"bench\"}");
    if (strncmp(path, "/v1/models ", 11) == 0)
        return answer_json(stream, "200 OK",
                           "{\"object\":\"list\",\"data\":[{\"id\":\"bench\",\"object\":\"model\","
                           "\"owned_by\":\"vllm\",\"max_model_len\":4096}]}");
    return answer_json(stream, "404 Not Found", "{\"detail\":\"Not Found\"}");
}

/* Answer the request that is held, if it is whole; false where the connection cannot go on. */
static bool take_request(Stream *stream) {
    stream->request[stream->held] = 0;
    char *end = strstr(stream->request, "\r\n\r\n");
    if (!end)
        return stream->held < REQUEST_SIZE - 1;
    char *body = end + 4;
    const char *length = strcasestr(stream->request, "\r\ncontent-length:");
    size_t wanted = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    if (stream->held - (body - stream->request) < wanted)
        return stream->held < REQUEST_SIZE - 1;
    stream->held = 0;
    return strchr(stream->request, ' ') && answer(stream, stream->request, body);
}

static int64_t receive_time_ns(struct msghdr *message) {
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC), offset_ns = clock_ns(CLOCK_REALTIME) - now_ns;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SO_TIMESTAMPNS) {
            struct timespec at;
            memcpy(&at, CMSG_DATA(part), sizeof at);
            int64_t at_ns = at.tv_sec * INT64_C(1000000000) + at.tv_nsec - offset_ns;
            return at_ns < now_ns ? at_ns : now_ns;
        }
    return now_ns;
}

static bool receive(Stream *stream) {
    char control[64];
    struct iovec space = {stream->request + stream->held, REQUEST_SIZE - 1 - stream->held};
    struct msghdr message = {.msg_iov = &space, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t size = recvmsg(stream->socket, &message, 0);
    if (size <= 0)
        return size < 0 && (errno == EAGAIN || errno == EINTR);
    stream->held += size;
    stream->received_ns = receive_time_ns(&message);
    return take_request(stream);
}

static void accept_all(int listener) {
    int on = 1, socket;
    while ((socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (open_streams == MOST_STREAMS) {
            close(socket);
            continue;
        }
        Stream *stream = calloc(1, sizeof *stream);
        if (!stream)
            fail("calloc");
        stream->socket = socket;
        stream->due_ns = NEVER;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
        struct epoll_event readable = {EPOLLIN, {.ptr = stream}};
        epoll_ctl(poller, EPOLL_CTL_ADD, socket, &readable);
        streams[open_streams++] = stream;
    }
}

static void on_readable(Stream *stream) {
    if (receive(stream))
        return;
    for (int place = 0; place < open_streams; place++)
        if (streams[place] == stream) {
            close_stream(place);
            return;
        }
}

/* The process. */

static int listen_anywhere(void) {
    struct sockaddr_in address = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) < 0 ||
        listen(listener, MOST_STREAMS) < 0)
        fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static void watch(int file) {
    struct epoll_event readable = {EPOLLIN, {.ptr = NULL}}; /* no stream: listener or timer */
    epoll_ctl(poller, EPOLL_CTL_ADD, file, &readable);
}

static void serve(int listener, int timer) {
    struct epoll_event ready[EVENTS];
    uint64_t ticks;
    while (!told_to_stop) {
        int count = epoll_wait(poller, ready, EVENTS, -1);
        send_due();
        for (int n = 0; n < count; n++)
            if (ready[n].data.ptr)
                on_readable(ready[n].data.ptr);
        accept_all(listener);
        while (read(timer, &ticks, sizeof ticks) > 0)
            ;
        set_timer(timer);
    }
}

static void write_log(const char *path) {
    FILE *log = fopen(path, "w");
    if (!log)
        fail(path);
    for (const Reply *reply = first_reply; reply; reply = reply->next) {
        if (reply->sent < reply->tokens)
            continue;
        fprintf(log, "{\"id\":\"%0*d\",\"tag\":\"%s\",\"received_ns\":%lld,\"sent_ns\":[",
                ID_DIGITS, reply->number, reply->tag, (long long)reply->received_ns);
        for (int n = 0; n < reply->sent; n++)
            fprintf(log, "%s%lld", n ? "," : "", (long long)reply->sent_ns[n]);
        fputs("]}\n", log);
    }
    if (fclose(log) != 0)
        fail(path);
}

static void on_term(int number) {
    (void)number;
    told_to_stop = 1;
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    ttft_ns = atoll(words[2]) * 1000;
    gap_ns = atoll(words[3]) * 1000;
    struct sigaction stop = {.sa_handler = on_term}; /* without SA_RESTART: epoll_wait returns */
    sigaction(SIGTERM, &stop, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    struct sched_param lowest = {sched_get_priority_min(SCHED_RR)};
    sched_setscheduler(0, SCHED_RR, &lowest); /* as the load worker does; refused: normal */
    make_events();
    poller = epoll_create1(0);
    int listener = listen_anywhere(), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    watch(listener);
    watch(timer);
    serve(listener, timer);
    write_log(words[1]);
    return 0;
}
