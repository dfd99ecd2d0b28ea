package dnsserver

import (
	"encoding/binary"

	"github.com/miekg/dns"
)

// query is a message that asks one question, as far as it was read. What is sent back is made from it.
type query struct {
	id, flags   uint16
	question    string // the section, as it came: answers repeat it; empty when it could not be read
	name        string // of the question, in the form of a zone file
	kind, class uint16

	extended bool // there is an OPT record, from which the following is (RFC 6891)
	version  uint8
	dnssec   bool // the bit DO, which answers repeat (RFC 3225)
	size     uint16
}

// ignored is the verdict on a message that is not answered: who answers answers, or what is too short for
// one, helps those who forge addresses.
const ignored = -1

// Parts of a message.
const (
	headerSize = 12
	optSize    = 11 // without options

	isAnswer        = 1 << 15
	opcodes         = 0xf << 11
	isAuthoritative = 1 << 10
	isRecursive     = 1 << 8 // recursion is desired, of the question
	checksDisabled  = 1 << 4
)

// parse reads a message, and judges it by a response code: success for what may be answered. Nothing of it
// was checked before. Names have no compression where there is nothing to refer to, and references go
// backwards (RFC 9267). Bytes after the last record are ignored.
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

// judge is about what is well formed.
func (q *query) judge() int {
	if q.extended && q.version != 0 {
		return dns.RcodeBadVers
	}
	switch q.kind {
	case dns.TypeOPT, dns.TypeTSIG: // which nothing has that could be asked for
		return dns.RcodeFormatError
	case dns.TypeMAILA, dns.TypeMAILB, dns.TypeTKEY:
		return dns.RcodeNotImplemented
	}
	return dns.RcodeSuccess
}

// readQuestion returns where the records begin.
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

// readRecords reads the records after the question. A question has none in the first two sections, but for the
// SOA record of one for a transfer (RFC 1995). Of those in the last one only OPT means something here.
func (q *query) readRecords(m []byte, at int) bool {
	for section := range 3 {
		n := binary.BigEndian.Uint16(m[6+2*section:])
		if n > 0 && (section == 0 || section == 1 && q.kind != dns.TypeIXFR) {
			return false
		}
		for range n { // each takes bytes of the message, or ends it
			if at = q.readRecord(m, at, section == 2); at < 0 {
				return false
			}
		}
	}
	return true
}

// readRecord returns where the next record begins; less than 0 for one that is malformed.
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
	if q.extended || fixed != at+1 || !areOptions(m[data:end]) { // one, of the root
		return -1
	}
	q.extended, q.size = true, binary.BigEndian.Uint16(m[fixed+2:])
	q.version, q.dnssec = m[fixed+5], m[fixed+6]&0x80 != 0
	return end
}

// areOptions reports whether the data of an OPT record is a list of options, whatever they say.
func areOptions(data []byte) bool {
	for len(data) > 0 {
		if len(data) < 4 || 4+int(binary.BigEndian.Uint16(data[2:])) > len(data) {
			return false
		}
		data = data[4+int(binary.BigEndian.Uint16(data[2:])):]
	}
	return true
}

// skipName returns where a name ends; less than 0 for one that is malformed. It may end with a reference to
// what is after the header and before a place.
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

// reply is the beginning of an answer, up to the question, with room for so many more bytes.
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

// end appends the OPT record, if the question has one, with the upper bits of a response code.
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

// failure is an answer that is a response code alone. It is not longer than the question.
func (q *query) failure(rcode int) []byte {
	return q.end(q.reply(uint16(rcode&0xf), 0, 0), rcode) //nolint:gosec // 4 bits
}

// prohibited is the answer to a client that may not ask: REFUSED, with the extended error that says why for those who
// take one (RFC 8914, section 4.19). It has no text, so that who forges addresses gains 6 bytes at most.
func (q *query) prohibited() []byte {
	m := q.failure(dns.RcodeRefused)
	if !q.extended {
		return m
	}
	option := []byte{0, dns.EDNS0EDE, 0, 2, 0, byte(dns.ExtendedErrorCodeProhibited)}
	m[len(m)-1] = byte(len(option)) // the length of the data of the OPT record, which is last
	return append(m, option...)
}

// sizeFor is how long an answer may be.
func (q *query) sizeFor(network string) int {
	switch {
	case network != "udp":
		return dns.MaxMsgSize
	case !q.extended:
		return dns.MinMsgSize
	}
	return min(max(dns.MinMsgSize, int(q.size)), udpSize)
}
