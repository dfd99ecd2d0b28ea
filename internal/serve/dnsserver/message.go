package dnsserver

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

// query is a message with one question, as far as it could be parsed. Replies are made from it.
type query struct {
	id, flags   uint16
	question    string // the section as it was received: replies repeat it; empty when it could not be parsed
	name        string // of the question, in the form of a zone file
	kind, class uint16

	extended bool // there is an OPT record, which the fields below are from (RFC 6891)
	version  uint8
	dnssec   bool // the bit DO, which replies repeat (RFC 3225)
	size     uint16
}

// ignored is the result for a message that gets no reply. Replies to responses, and to messages that are too short for
// a header, would help attackers who forge addresses.
const ignored = -1

// Parts of a message.
const (
	headerSize = 12
	optSize    = 11 // without options

	isAnswer        = 1 << 15
	opcodes         = 0xf << 11
	isAuthoritative = 1 << 10
	isRecursive     = 1 << 8 // the question asks for recursion
	checksDisabled  = 1 << 4
)

// parse parses a message that has not been checked, and returns a response code: success for a question that may be
// answered. Names must not be compressed where no name comes before them, and references must go backwards (RFC 9267).
// Bytes after the last record are ignored.
func parse(m []byte) (q query, rcode int) {
	if len(m) < headerSize {
		return q, ignored
	}
	q.id, q.flags = binary.BigEndian.Uint16(m), binary.BigEndian.Uint16(m[2:])
	switch {
	case q.flags&isAnswer != 0:
		return q, ignored
	case q.flags&opcodes != dns.OpcodeQuery<<11:
		return q, dns.RcodeNotImplemented
	case binary.BigEndian.Uint16(m[4:]) != 1: // RFC 9619
		return q, dns.RcodeFormatError
	}
	at, ok := q.readQuestion(m)
	if !ok || !q.readRecords(m, at) {
		return q, dns.RcodeFormatError
	}
	return q, q.judge()
}

// judge returns the response code for a well-formed message.
func (q *query) judge() int {
	if q.extended && q.version != 0 {
		return dns.RcodeBadVers
	}
	switch q.kind {
	case dns.TypeOPT, dns.TypeTSIG: // no name can have records of these types
		return dns.RcodeFormatError
	case dns.TypeMAILA, dns.TypeMAILB, dns.TypeTKEY:
		return dns.RcodeNotImplemented
	}
	return dns.RcodeSuccess
}

// readQuestion parses the question, and returns where the records begin.
func (q *query) readQuestion(m []byte) (end int, ok bool) {
	at := skipName(m, headerSize, headerSize)
	end = at + 4
	if at < 0 || end > len(m) {
		return 0, false
	}
	name, _, err := dns.UnpackDomainName(m[:at], headerSize)
	if err != nil {
		return 0, false
	}
	q.name, q.question = name, string(m[headerSize:end])
	q.kind, q.class = binary.BigEndian.Uint16(m[at:]), binary.BigEndian.Uint16(m[at+2:])
	return end, true
}

// readRecords parses the records after the question. The first two sections must be empty, except for the SOA record
// of a request for a transfer (RFC 1995). In the last section, only an OPT record is used.
func (q *query) readRecords(m []byte, at int) bool {
	for section := range 3 {
		n := binary.BigEndian.Uint16(m[6+2*section:])
		if n > 0 && (section == 0 || section == 1 && q.kind != dns.TypeIXFR) {
			return false
		}
		for range n { // each record takes bytes of the message, or is an error
			if at = q.readRecord(m, at, section == 2); at < 0 {
				return false
			}
		}
	}
	return true
}

// readRecord returns where the next record begins; less than 0 if this one is malformed.
func (q *query) readRecord(m []byte, at int, additional bool) int {
	fixed := skipName(m, at, at)
	if fixed < 0 || fixed+10 > len(m) {
		return -1
	}
	data := fixed + 10
	end := data + int(binary.BigEndian.Uint16(m[fixed+8:]))
	if end > len(m) {
		return -1
	}
	if !additional || binary.BigEndian.Uint16(m[fixed:]) != dns.TypeOPT {
		return end
	}
	if q.extended || fixed != at+1 || !areOptions(m[data:end]) { // at most one OPT record, with the root as its name
		return -1
	}
	q.extended, q.size = true, binary.BigEndian.Uint16(m[fixed+2:])
	q.version, q.dnssec = m[fixed+5], m[fixed+6]&0x80 != 0
	return end
}

// areOptions reports whether the data of an OPT record is a well-formed list of options, with any contents.
func areOptions(data []byte) bool {
	for len(data) > 0 {
		if len(data) < 4 || 4+int(binary.BigEndian.Uint16(data[2:])) > len(data) {
			return false
		}
		data = data[4+int(binary.BigEndian.Uint16(data[2:])):]
	}
	return true
}

// skipName returns where a name ends; less than 0 if it is malformed. It may end with a reference to an offset after
// the header and below before.
func skipName(m []byte, at, before int) int {
	for length := 1; at < len(m); {
		n := int(m[at])
		at++
		switch {
		case n == 0:
			return at
		case n >= 0xc0:
			if at >= len(m) {
				return -1
			}
			if to := (n&0x3f)<<8 | int(m[at]); to < headerSize || to >= before {
				return -1
			}
			return at + 1
		case n > 63:
			return -1
		}
		if length += n + 1; length > 255 {
			return -1
		}
		at += n
	}
	return -1
}

// reply returns the beginning of a reply, up to the question, with capacity for more bytes.
func (q *query) reply(flags uint16, answers, more int) []byte {
	m := make([]byte, headerSize, headerSize+len(q.question)+more+optSize)
	binary.BigEndian.PutUint16(m, q.id)
	binary.BigEndian.PutUint16(m[2:], isAnswer|flags|q.flags&(opcodes|isRecursive|checksDisabled))
	if q.question != "" {
		m[5] = 1
	}
	binary.BigEndian.PutUint16(m[6:], uint16(answers)) //nolint:gosec // a bounded part of the backends
	if q.extended {
		m[11] = 1
	}
	return append(m, q.question...)
}

// end appends the OPT record with the upper bits of a response code, if the question has one.
func (q *query) end(m []byte, rcode int) []byte {
	if !q.extended {
		return m
	}
	var flags byte
	if q.dnssec {
		flags = 0x80
	}
	return append(m, 0, 0, byte(dns.TypeOPT), udpSize>>8, udpSize&0xff, byte(rcode>>4), 0, flags, 0, 0, 0) //nolint:gosec // it has 12 bits
}

// failure returns a reply that has only a response code. It is not longer than the question.
func (q *query) failure(rcode int) []byte {
	return q.end(q.reply(uint16(rcode&0xf), 0, 0), rcode) //nolint:gosec // 4 bits
}

// prohibited returns the reply to a client that may not ask: REFUSED. If the client supports extended errors, it has
// one with the reason (RFC 8914, section 4.19). This has no text, so that an attacker who forges addresses gains at
// most 6 bytes.
func (q *query) prohibited() []byte {
	m := q.failure(dns.RcodeRefused)
	if !q.extended {
		return m
	}
	option := []byte{0, dns.EDNS0EDE, 0, 2, 0, byte(dns.ExtendedErrorCodeProhibited)}
	m[len(m)-1] = byte(len(option)) // the length of the data of the OPT record, which is the last field
	return append(m, option...)
}

// sizeFor returns the maximum length of a reply, in bytes.
func (q *query) sizeFor(network string) int {
	switch {
	case network != "udp":
		return dns.MaxMsgSize
	case !q.extended:
		return dns.MinMsgSize
	}
	return min(max(dns.MinMsgSize, int(q.size)), udpSize)
}
