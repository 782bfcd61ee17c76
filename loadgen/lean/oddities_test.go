package lean_test

import (
	"net/http"
	"strings"
)

// oddity is an answer as some server gives it.
type oddity struct {
	name   string
	answer string
	method string // empty: GET
	end    end
	differ string // why the two transports do not agree; empty: they have to
}

// end is what a server does after an answer.
type end string

const (
	closes end = ""
	waits  end = "waits" // for as long as the client does
	resets end = "resets"
)

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// oddities are answers of every kind that a client has to understand or refuse.
func oddities() []oddity {
	return []oddity{
		{name: "plain", answer: fine, end: waits},
		{name: "plain, then closed", answer: fine},
		{name: "every header that is checked", answer: "HTTP/1.1 429 Too Many Requests\r\nRateLimit-Limit: 10\r\nRateLimit-Remaining: 0\r\nRateLimit-Reset: 60\r\nRetry-After: 6\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}", end: waits},
		{name: "nothing", answer: ""},
		{name: "reset at once", answer: "", end: resets},
		{name: "no answer in time", answer: "", end: waits},
		{name: "half a status line", answer: "HTTP/1.1 20"},
		{name: "half a head", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"},
		{name: "half a head, and no more in time", answer: "HTTP/1.1 200 OK\r\nContent-Le", end: waits},
		{name: "another protocol", answer: "220 smtp.example ESMTP\r\n"},
		{name: "another protocol that speaks on", answer: "SSH-2.0-OpenSSH_9.2\r\n" + strings.Repeat("x", 200)},
		{name: "a TLS alert", answer: "\x15\x03\x01\x00\x02\x02\x46"},
		{name: "HTTP/2 frames", answer: "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64"},

		{name: "no reason", answer: "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "no reason, no space", answer: "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "two spaces before the status", answer: "HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "two spaces before the reason", answer: "HTTP/1.1 200  OK\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a reason in Latin-1", answer: "HTTP/1.1 200 d\xe9j\xe0\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a status of two digits", answer: "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok"},
		{name: "a status of four digits", answer: "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok"},
		{name: "a status with a sign", answer: "HTTP/1.1 +20 OK\r\nContent-Length: 2\r\n\r\nok"},
		{name: "status 000", answer: "HTTP/1.1 000 Zero\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "status 999", answer: "HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a version in small letters", answer: "http/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		{name: "HTTP/1.2", answer: "HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "HTTP/2.0 in a line", answer: "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a blank line first", answer: "\r\n" + fine},

		{name: "HTTP/1.0 with a length", answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "HTTP/1.0 to the close", answer: "HTTP/1.0 200 OK\r\n\r\nto the close"},
		{name: "HTTP/1.0 that is kept", answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "HTTP/1.0 in chunks", answer: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
		{name: "to the close", answer: "HTTP/1.1 200 OK\r\n\r\nto the close"},
		{name: "to the close, nothing", answer: "HTTP/1.1 200 OK\r\n\r\n"},
		{name: "to the close, which is a reset", answer: "HTTP/1.1 200 OK\r\n\r\nto the", end: resets},
		{name: "to a close that does not come", answer: "HTTP/1.1 200 OK\r\n\r\nto the", end: waits},
		{name: "said to be closed", answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"},
		{name: "said to be closed, among others", answer: "HTTP/1.1 200 OK\r\nConnection: foo, Close\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "said to be kept", answer: "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok", end: waits},

		{name: "a body that is short", answer: "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok"},
		{name: "a body that is reset", answer: "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", end: resets},
		{name: "a body that does not come", answer: "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", end: waits},
		{name: "a body that goes on", answer: fine + "and on", end: waits},
		{name: "an answer that nobody asked for", answer: fine + fine, end: waits},
		{name: "an empty body", answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", end: waits},
		{name: "a body larger than any buffer", answer: "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("0123456789", 10_000), end: waits},
		{name: "two lengths that agree", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "two lengths that do not", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"},
		{name: "a list of lengths", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok"},
		{name: "a length with a sign", answer: "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok"},
		{name: "a negative length", answer: "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok"},
		{name: "a length in hexadecimal", answer: "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok"},
		{name: "a length beyond numbers", answer: "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok"},
		{name: "an empty length", answer: "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok"},
		{name: "a length between spaces", answer: "HTTP/1.1 200 OK\r\nContent-Length: \t 2 \t\r\n\r\nok", end: waits},

		{name: "chunks", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", end: waits},
		{name: "chunks with extensions", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b;c=\"d e\"\r\nabc\r\n0;last\r\n\r\n", end: waits},
		{name: "chunks with a trailer", answer: "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n", end: waits},
		{name: "chunks with a trailer nobody spoke of", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n", end: waits},
		{name: "chunks with a trailer that is forbidden", answer: "HTTP/1.1 200 OK\r\nTrailer: Content-Length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{name: "chunks with a huge trailer", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + strings.Repeat("x", 10_000) + "\r\n\r\n"},
		{name: "chunks with a huge extension", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;" + strings.Repeat("x", 10_000) + "\r\nabc\r\n0\r\n\r\n"},
		{name: "chunks in many small pieces", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\na\r\n", 1000) + "0\r\n\r\n"},
		{name: "chunks in capitals", answer: "HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n", end: waits},
		{name: "chunks beside a length", answer: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
		{name: "chunks without an end", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"},
		{name: "a chunk that is short", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30\r\nabc"},
		{name: "a chunk that is longer than it says", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n"},
		{name: "a chunk of no size", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"},
		{name: "a chunk of a size beyond numbers", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n"},
		{name: "chunks, then more", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + fine, end: waits},
		{name: "another encoding", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
		{name: "two encodings", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},

		{name: "HEAD", method: http.MethodHead, answer: "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", end: waits},
		{name: "HEAD, with a body all the same", method: http.MethodHead, answer: fine, end: waits},
		{name: "HEAD, in chunks", method: http.MethodHead, answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", end: waits},
		{name: "HEAD, no length", method: http.MethodHead, answer: "HTTP/1.1 200 OK\r\n\r\n", end: waits},
		{name: "204", answer: "HTTP/1.1 204 No Content\r\n\r\n", end: waits},
		{name: "204 with a length", answer: "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "304 with a length", answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 2000\r\nETag: \"x\"\r\n\r\n", end: waits},
		{name: "304 in chunks", answer: "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", end: waits},

		{name: "100 before it", answer: "HTTP/1.1 100 Continue\r\n\r\n" + fine, end: waits},
		{name: "several before it", answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 199 Odd\r\nContent-Length: 5\r\n\r\n" + fine, end: waits},
		{name: "1xx without end", answer: strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 4000)},
		{name: "1xx, then nothing", answer: "HTTP/1.1 100 Continue\r\n\r\n"},
		{name: "101", answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello",
			differ: "net/http hands out the connection; a load run has nothing to say on it"},

		{name: "lines that end in LF", answer: "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", end: waits},
		{name: "one line that ends in LF", answer: "HTTP/1.1 200 OK\r\nX: y\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a CR inside a value", answer: "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 2\r\n\r\nok"},
		{name: "a CR inside the reason", answer: "HTTP/1.1 200 O\rK\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a NUL in a value", answer: "HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 2\r\n\r\nok"},
		{name: "Latin-1 in a value", answer: "HTTP/1.1 200 OK\r\nX: d\xe9j\xe0\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a tab in a value", answer: "HTTP/1.1 200 OK\r\nX:\t a\tb \t\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a folded line", answer: "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a first line that is folded", answer: "HTTP/1.1 200 OK\r\n X: a\r\nContent-Length: 2\r\n\r\nok"},
		{name: "no colon", answer: "HTTP/1.1 200 OK\r\nX\r\nContent-Length: 2\r\n\r\nok"},
		{name: "no name", answer: "HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 2\r\n\r\nok"},
		{name: "a space before the colon", answer: "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok"},
		{name: "a name with a space", answer: "HTTP/1.1 200 OK\r\nX Y: z\r\nContent-Length: 2\r\n\r\nok"},
		{name: "a name beyond ASCII", answer: "HTTP/1.1 200 OK\r\nX\xe9: z\r\nContent-Length: 2\r\n\r\nok"},
		{name: "names in any case", answer: "HTTP/1.1 200 OK\r\ncontent-LENGTH: 2\r\nRATELIMIT-limit: 1\r\nx_y-z: 2\r\nRateLimit-Limit: 3\r\n\r\nok", end: waits},
		{name: "a value that is empty", answer: "HTTP/1.1 200 OK\r\nX:\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "the same header many times", answer: "HTTP/1.1 200 OK\r\nRetry-After: 1\r\nRetry-After: 2\r\nX: y\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "Pragma", answer: "HTTP/1.1 200 OK\r\nPragma: no-cache\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a compressed body is not unpacked", answer: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a redirect", answer: "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n", end: waits},
		{name: "a long head", answer: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 20_000) + "\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a head that is too long", answer: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 200_000) + "\r\nContent-Length: 2\r\n\r\nok", end: waits},
		{name: "a head of too many lines", answer: "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 40_000) + "Content-Length: 2\r\n\r\nok", end: waits},
	}
}
