#include "wire/http/websocket.h"

#include <errno.h>
#include <nettle/base64.h>
#include <nettle/sha1.h>
#include <stdlib.h>
#include <wslay/wslay.h>

#include "base/utf8.h"
#include "wire/http/http1.h"

enum { HEAD_MAX = 10, MASK_BYTES = 4, LONG_LENGTH = 126, LONGEST_LENGTH = 127 };

struct websocket {
	wslay_frame_context_ptr frames;
	size_t message_max;
	struct buf message;
	bool in_message; /* some of its frames have come, the last has not */
	bool is_text;
	bool in_frame; /* its head was looked at */
	uint64_t left; /* of the frame at hand */

	/* Where the next head is, up to its length: wslay reveals one only together with its
	 * payload, and we do not wait for one that is too large. */
	unsigned char head[HEAD_MAX];
	unsigned n_head;
	uint64_t skip; /* bytes before it: the mask and the payload */

	char control[WEBSOCKET_CONTROL_MAX];
	size_t control_len;
	char pong[WEBSOCKET_CONTROL_MAX];
	size_t pong_len;
	bool owes_pong;

	bool over;
	unsigned code;

	/* while a push or a write is under way */
	struct text in;
	struct buf *out;
};

/* ---- what wslay asks for ---- */

static ssize_t give_bytes(uint8_t *to, size_t size, int flags, void *arg)
{
	struct websocket *w = arg;
	size_t n = w->in.len < size ? w->in.len : size;

	if (n == 0)
		return -1;
	memcpy(to, w->in.data, n);
	w->in.data += n;
	w->in.len -= n;
	return (ssize_t)n;
}

static ssize_t take_bytes(const uint8_t *data, size_t len, int flags, void *arg)
{
	struct websocket *w = arg;

	buf_add(w->out, data, len);
	return w->out->err == 0 ? (ssize_t)len : -1;
}

/* ---- life ---- */

int websocket_new(size_t message_max, struct websocket **ret_websocket)
{
	const struct wslay_frame_callbacks callbacks = {
		.recv_callback = give_bytes,
		.send_callback = take_bytes,
	};
	struct websocket *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	if (wslay_frame_context_init(&w->frames, &callbacks, w) != 0) {
		free(w);
		return -ENOMEM;
	}
	w->message_max = message_max;
	w->code = WEBSOCKET_ABNORMAL;
	buf_init(&w->message, message_max);
	*ret_websocket = w;
	return 0;
}

void websocket_free(struct websocket *w)
{
	if (!w)
		return;
	wslay_frame_context_free(w->frames);
	buf_done(&w->message);
	free(w);
}

size_t websocket_held(const struct websocket *w)
{
	return w->message.len;
}

void websocket_drop(struct websocket *w)
{
	buf_done(&w->message);
}

unsigned websocket_code(const struct websocket *w)
{
	return w->code;
}

/* ---- out ---- */

static int write_frame(struct websocket *w, struct buf *out, unsigned opcode, struct text data)
{
	struct wslay_frame_iocb frame = {
		.fin = 1,
		.opcode = (uint8_t)opcode,
		.payload_length = data.len,
		.data = (const uint8_t *)data.data,
		.data_length = data.len,
	};
	/* So that it cannot fail half way. */
	int r = buf_reserve(out, data.len + WEBSOCKET_FRAME_MAX);

	if (r != 0)
		return r;
	w->out = out;
	return wslay_frame_send(w->frames, &frame) == (ssize_t)data.len ? 0 : -EIO;
}

int websocket_write(struct websocket *w, struct buf *out, bool is_text, struct text data)
{
	if (w->over)
		return -EPIPE;
	return write_frame(w, out, is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, data);
}

int websocket_write_ping(struct websocket *w, struct buf *out)
{
	return w->over ? -EPIPE : write_frame(w, out, WSLAY_PING, (struct text) {0});
}

static bool is_sent(unsigned code)
{
	return code != WEBSOCKET_NO_CODE && code != WEBSOCKET_ABNORMAL;
}

int websocket_write_close(struct websocket *w, struct buf *out, enum websocket_close code,
			  const char *reason)
{
	struct text t = text_cut(text_of(reason ? reason : ""), WEBSOCKET_CONTROL_MAX - 2);
	char payload[WEBSOCKET_CONTROL_MAX] = {(char)(code >> 8), (char)(code & 0xff)};

	if (w->over)
		return 0;
	w->over = true;
	w->code = code;
	memcpy(payload + 2, t.data, t.len);
	return write_frame(w, out, WSLAY_CONNECTION_CLOSE,
			   (struct text) {payload, is_sent(code) ? t.len + 2 : 0});
}

/* ---- in ---- */

static void websocket_fail(struct websocket *w, struct buf *out, enum websocket_close code,
			   const char *text)
{
	(void)websocket_write_close(w, out, code, text);
}

/* Codes that may stand in a frame: registered ones, and those that programs agree on. */
static bool is_close_code(unsigned code)
{
	return (code >= 1000 && code <= 1014 && code != 1004 && is_sent(code)) ||
	       (code >= 3000 && code <= 4999);
}

static void take_close(struct websocket *w, struct buf *out)
{
	struct text reason = {.data = w->control + 2};
	unsigned code = WEBSOCKET_NO_CODE;

	if (w->control_len == 1) {
		websocket_fail(w, out, WEBSOCKET_PROTOCOL,
			       "the payload of a close frame must have 0 or at least 2 bytes");
		return;
	}
	if (w->control_len >= 2) {
		code = (unsigned)(unsigned char)w->control[0] << 8 | (unsigned char)w->control[1];
		reason.len = w->control_len - 2;
		if (!is_close_code(code)) {
			websocket_fail(w, out, WEBSOCKET_PROTOCOL, "invalid close code");
			return;
		}
	}
	if (!utf8_is_valid(reason.data, reason.len)) {
		websocket_fail(w, out, WEBSOCKET_ENCODING, "the reason is not UTF-8");
		return;
	}
	websocket_fail(w, out, code, NULL);
}

static void take_control(struct websocket *w, unsigned opcode, struct buf *out)
{
	if (opcode == WSLAY_CONNECTION_CLOSE) {
		take_close(w, out);
	} else if (opcode == WSLAY_PING) {
		memcpy(w->pong, w->control, w->control_len);
		w->pong_len = w->control_len;
		w->owes_pong = true;
	}
	w->control_len = 0;
}

static void take_message(struct websocket *w, websocket_fn fn, void *arg, struct buf *out)
{
	const struct websocket_message m = {
		.is_text = w->is_text,
		.data = {.data = w->message.len > 0 ? w->message.data : "", .len = w->message.len},
	};

	w->in_message = false;
	if (m.is_text && !utf8_is_valid(m.data.data, m.data.len))
		websocket_fail(w, out, WEBSOCKET_ENCODING, "the text is not UTF-8");
	else
		fn(arg, &m);
	/* An idle connection holds no buffer. */
	buf_done(&w->message);
}

static const char *wrong_head(const struct websocket *w, const struct wslay_frame_iocb *f)
{
	bool is_control = wslay_is_ctrl_frame(f->opcode);

	if (!f->mask)
		return "client frames must be masked";
	if (f->rsv != WSLAY_RSV_NONE)
		return "a reserved bit is set";
	if (is_control ? f->opcode > WSLAY_PONG : f->opcode > WSLAY_BINARY_FRAME)
		return "unknown opcode";
	/* wslay has checked it already; our buffers rely on it. */
	if (is_control && (!f->fin || f->payload_length > WEBSOCKET_CONTROL_MAX))
		return "a control frame is fragmented or too long";
	if (!is_control && (f->opcode == WSLAY_CONTINUATION_FRAME) != w->in_message)
		return w->in_message ? "a new message starts before the previous message ended"
				     : "continuation frame without a message";
	return NULL;
}

static void begin_frame(struct websocket *w, const struct wslay_frame_iocb *f, struct buf *out)
{
	const char *wrong = wrong_head(w, f);

	w->in_frame = true;
	w->left = f->payload_length;
	if (wrong) {
		websocket_fail(w, out, WEBSOCKET_PROTOCOL, wrong);
		return;
	}
	if (wslay_is_ctrl_frame(f->opcode))
		return;
	if (!w->in_message)
		w->is_text = f->opcode == WSLAY_TEXT_FRAME;
	w->in_message = true;
	if (f->payload_length > w->message_max - w->message.len)
		websocket_fail(w, out, WEBSOCKET_TOO_LARGE, "the message is too large");
}

static void take_piece(struct websocket *w, const struct wslay_frame_iocb *f, struct buf *out)
{
	w->left -= f->data_length;
	if (wslay_is_ctrl_frame(f->opcode)) {
		if (f->data_length > 0)
			memcpy(w->control + w->control_len, f->data, f->data_length);
		w->control_len += f->data_length;
		return;
	}
	buf_add(&w->message, f->data, f->data_length);
	if (w->message.err != 0)
		websocket_fail(w, out, WEBSOCKET_INTERNAL, "out of memory");
}

static void take_frame(struct websocket *w, const struct wslay_frame_iocb *f, websocket_fn fn,
		       void *arg, struct buf *out)
{
	if (!w->in_frame)
		begin_frame(w, f, out);
	if (!w->over)
		take_piece(w, f, out);
	if (w->over || w->left > 0)
		return;
	w->in_frame = false;
	if (wslay_is_ctrl_frame(f->opcode))
		take_control(w, f->opcode, out);
	else if (f->fin)
		take_message(w, fn, arg, out);
}

static void pay_pong(struct websocket *w, struct buf *out)
{
	if (w->owes_pong && !w->over)
		(void)write_frame(w, out, WSLAY_PONG, (struct text) {w->pong, w->pong_len});
	w->owes_pong = false;
}

static size_t head_len(const struct websocket *w)
{
	unsigned length = w->n_head < 2 ? 0 : w->head[1] & 0x7f;

	return length == LONGEST_LENGTH ? HEAD_MAX : length == LONG_LENGTH ? 4 : 2;
}

static uint64_t announced(const struct websocket *w)
{
	uint64_t n = 0;

	if (w->n_head == 2)
		return w->head[1] & 0x7f;
	for (unsigned i = 2; i < w->n_head; i++)
		n = n << 8 | w->head[i];
	return n;
}

/* wslay has seen it, too, and has refused invalid heads. */
static void judge_head(struct websocket *w, struct buf *out)
{
	const struct wslay_frame_iocb f = {
		.fin = w->head[0] >> 7,
		.rsv = w->head[0] >> 4 & 7,
		.opcode = w->head[0] & 0xf,
		.payload_length = announced(w),
		.mask = w->head[1] >> 7,
	};

	w->skip = f.payload_length + (f.mask ? MASK_BYTES : 0);
	w->n_head = 0;
	if (!w->in_frame)
		begin_frame(w, &f, out);
}

static void read_frames(struct websocket *w, struct text in, websocket_fn fn, void *arg,
			struct buf *out)
{
	w->in = in;
	while (!w->over) {
		struct wslay_frame_iocb f = {0};
		ssize_t n = wslay_frame_recv(w->frames, &f);

		if (n >= 0) {
			take_frame(w, &f, fn, arg, out);
		} else if (n == WSLAY_ERR_WANT_READ) {
			/* It reads once, and may want more than that brought. */
			if (w->in.len == 0)
				break;
		} else {
			websocket_fail(w, out, WEBSOCKET_PROTOCOL, "invalid frame");
		}
	}
	w->in = (struct text) {0};
}

/* As much of a head as is there, or of what follows it. */
static size_t next_piece(struct websocket *w, const char *data, size_t len)
{
	uint64_t want = w->skip > 0 ? w->skip : head_len(w) - w->n_head;
	size_t n = want < len ? (size_t)want : len;

	if (w->skip > 0) {
		w->skip -= n;
		return n;
	}
	memcpy(w->head + w->n_head, data, n);
	w->n_head += (unsigned)n;
	return n;
}

bool websocket_push(struct websocket *w, const char *data, size_t len, websocket_fn fn, void *arg,
		    struct buf *out)
{
	while (len > 0 && !w->over) {
		size_t n = next_piece(w, data, len);

		read_frames(w, (struct text) {data, n}, fn, arg, out);
		if (!w->over && w->n_head >= 2 && w->n_head == head_len(w))
			judge_head(w, out);
		data += n;
		len -= n;
	}
	pay_pong(w, out);
	return !w->over;
}

/* How a WebSocket begins: the key of a request, and the answer that proves we have read it. */

enum { KEY_LEN = 24, KEY_BYTES = 16 };

static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

static bool is_key(struct text t)
{
	struct base64_decode_ctx ctx;
	uint8_t bytes[BASE64_DECODE_LENGTH(KEY_LEN)];
	size_t n = sizeof(bytes);

	if (t.len != KEY_LEN)
		return false;
	/* The library would skip white space. */
	for (size_t i = 0; i < t.len; i++) {
		if (t.data[i] <= ' ')
			return false;
	}
	base64_decode_init(&ctx);
	return base64_decode_update(&ctx, &n, bytes, t.len, t.data) && base64_decode_final(&ctx) &&
	       n == KEY_BYTES;
}

int websocket_accept(const struct http_request *r, char ret_accept[WEBSOCKET_ACCEPT_LEN + 1],
		     struct error *error)
{
	struct text key = http_header_find(r, "Sec-WebSocket-Key");
	uint8_t digest[SHA1_DIGEST_SIZE];
	struct sha1_ctx sha;

	if (http_header_count(r, "Sec-WebSocket-Version") != 1 ||
	    !text_is(http_header_find(r, "Sec-WebSocket-Version"), "13"))
		return refuse(error, REFUSE_METHOD, "Sec-WebSocket-Version must be 13");
	if (http_header_count(r, "Sec-WebSocket-Key") != 1 || !is_key(key))
		return refuse(error, REFUSE_REQUEST,
			      "expected one Sec-WebSocket-Key with 16 bytes in base64");
	sha1_init(&sha);
	sha1_update(&sha, key.len, (const uint8_t *)key.data);
	sha1_update(&sha, sizeof(guid) - 1, (const uint8_t *)guid);
	sha1_digest(&sha, sizeof(digest), digest);
	_Static_assert(BASE64_ENCODE_RAW_LENGTH(SHA1_DIGEST_SIZE) == WEBSOCKET_ACCEPT_LEN, "");
	base64_encode_raw(ret_accept, sizeof(digest), digest);
	ret_accept[WEBSOCKET_ACCEPT_LEN] = '\0';
	return 0;
}
