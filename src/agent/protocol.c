/* SPDX-License-Identifier: MIT */
/* protocol.c - see protocol.h. */
#include "src/agent/protocol.h"

#include <errno.h>
#include <string.h>

enum { MAX_CODE = PROTOCOL_MAX_BYTES - 64, MAX_WORDS = 1024, MAX_LIST = 1 << 14 };

/* The rules of each kind; a new one is a row here. */
static const struct rule {
	enum protocol_end from;
	unsigned n_numbers;
	uint32_t max_number; /* inclusive */
	size_t max_text;
} rules[] = {
	[MESSAGE_HELLO] = { PROTOCOL_PROBING, 0, 0, 0 },
	[MESSAGE_EVALUATE] = { PROTOCOL_PROBING, 1, UINT32_MAX, MAX_CODE },
	[MESSAGE_INTERRUPT] = { PROTOCOL_PROBING, 0, 0, 0 },
	[MESSAGE_DETACH] = { PROTOCOL_PROBING, 0, 0, 0 },
	[MESSAGE_WELCOME] = { PROTOCOL_AGENT, 1, INT32_MAX, MAX_WORDS },
	[MESSAGE_STARTED] = { PROTOCOL_AGENT, 0, 0, 0 },
	[MESSAGE_OUTPUT] = { PROTOCOL_AGENT, 1, 2, PROTOCOL_MAX_OUTPUT },
	[MESSAGE_RESULT] = { PROTOCOL_AGENT, 1, OUTCOME_N - 1, MAX_CODE },
	[MESSAGE_REFUSED] = { PROTOCOL_AGENT, 0, 0, MAX_WORDS },
	[MESSAGE_BYE] = { PROTOCOL_AGENT, 0, 0, 0 },
	[MESSAGE_CONFIGURE] = { PROTOCOL_PROBING, 0, 0, MAX_WORDS },
	[MESSAGE_CONFIGURATION] = { PROTOCOL_AGENT, 0, 0, MAX_LIST },
	[MESSAGE_SAMPLE] = { PROTOCOL_PROBING, 2, SAMPLE_MAX_RATE, 0 },
	[MESSAGE_SAMPLING] = { PROTOCOL_AGENT, 0, 0, 0 },
	[MESSAGE_LAYOUT] = { PROTOCOL_PROBING, 0, 0, MAX_WORDS },
};

struct header {
	uint32_t n_bytes; /* of the whole message */
	uint16_t kind, version;
};
_Static_assert(sizeof(struct header) == PROTOCOL_HEADER_BYTES, "as it goes over the wire");

static const struct rule *rule_of(unsigned kind)
{
	return kind >= MESSAGE_HELLO && kind < sizeof rules / sizeof rules[0] ? &rules[kind] : NULL;
}

/* Refuse a message that is too long before the rest of it arrives. */
static int check(const struct header *header, enum protocol_end from)
{
	const struct rule *rule = rule_of(header->kind);
	size_t least;

	if (header->version != PROTOCOL_VERSION)
		return -EPROTONOSUPPORT;
	if (!rule || rule->from != from)
		return -EBADMSG;
	least = PROTOCOL_HEADER_BYTES + rule->n_numbers * sizeof(uint32_t);
	return header->n_bytes >= least && header->n_bytes - least <= rule->max_text ? 0 : -EBADMSG;
}

ssize_t message_parse(const void *bytes, size_t n_bytes, enum protocol_end from, struct message *ret)
{
	struct message message = { 0 };
	struct header header;
	const struct rule *rule;
	const char *at = bytes;
	int r;

	if (n_bytes < sizeof header)
		return 0;
	memcpy(&header, at, sizeof header);
	r = check(&header, from);
	if (r < 0)
		return r;
	if (n_bytes < header.n_bytes)
		return 0;
	rule = rule_of(header.kind);
	message.kind = header.kind;
	memcpy(message.numbers, at + sizeof header, rule->n_numbers * sizeof(uint32_t));
	for (unsigned i = 0; i < rule->n_numbers; i++)
		if (message.numbers[i] > rule->max_number)
			return -EBADMSG;
	message.text = at + sizeof header + rule->n_numbers * sizeof(uint32_t);
	message.n_text = header.n_bytes - sizeof header - rule->n_numbers * sizeof(uint32_t);
	*ret = message;
	return header.n_bytes;
}

ssize_t message_format(const struct message *message, void *to)
{
	const struct rule *rule = rule_of(message->kind);
	struct header header = { .kind = (uint16_t)message->kind, .version = PROTOCOL_VERSION };
	size_t n_numbers = rule ? rule->n_numbers * sizeof(uint32_t) : 0;
	char *at = to;

	if (!rule || message->n_text > rule->max_text)
		return -EMSGSIZE;
	header.n_bytes = (uint32_t)(sizeof header + n_numbers + message->n_text);
	memcpy(at, &header, sizeof header);
	memcpy(at + sizeof header, message->numbers, n_numbers);
	if (message->n_text > 0)
		memcpy(at + sizeof header + n_numbers, message->text, message->n_text);
	return header.n_bytes;
}
