package peer

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"io"
	"net/http"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
)

// A RefusedError says why an envelope is not accepted.
type RefusedError struct {
	Status  int // 401, or 421 if it is for another replica
	Reason  string
	Expired bool // the envelope is valid, and the credential of its sender is not any more
	Version bool // the envelope is of another version
}

func (e *RefusedError) Error() string { return e.Reason }

func refused(reason string) error {
	return &RefusedError{Status: http.StatusUnauthorized, Reason: reason}
}

// ErrAltered is the error of reading a body that is not the one of the envelope.
var ErrAltered = errors.New("the body is not the one that was signed")

// Refuse answers a request whose envelope was refused with err.
func Refuse(w http.ResponseWriter, err error) {
	status, why := http.StatusUnauthorized, "refused"
	if refusal := (*RefusedError)(nil); errors.As(err, &refusal) {
		if status = refusal.Status; refusal.Version {
			why = firstPart
		}
	}
	w.Header().Set(Header, why)
	w.Header().Set("Connection", "close")
	date(w)
	http.Error(w, http.StatusText(status), status)
}

// date says what time it is by the clock that envelopes are judged by: whoever compares clocks
// reads it.
func date(w http.ResponseWriter) {
	w.Header().Set("Date", replicas.Now().UTC().Format(http.TimeFormat))
}

// unserved is a header of responses.
const unserved = "Mcpbridge-Unserved"

// Unserve answers a forwarded request to a server that this replica does not have: to those
// who sent it the replica is gone. The client is not told which servers there are instead.
func Unserve(w http.ResponseWriter) {
	w.Header().Set(unserved, "1")
	w.Header().Set("Connection", "close") // the body is not read
	http.Error(w, http.StatusText(http.StatusNotFound), http.StatusNotFound)
}

// anew is the value of [Header] in a response to a request on a connection whose certificate
// is not accepted any more.
const anew = "connect anew"

// RefuseConnection answers a request on a connection whose certificate is not accepted any
// more, which the other replica's next connection may have replaced.
func RefuseConnection(w http.ResponseWriter) {
	w.Header().Set(Header, anew)
	w.Header().Set("Connection", "close")
	http.Error(w, http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized)
}

func appendMAC(dst []byte, text string, code []byte) []byte {
	dst = append(append(dst, text...), macPart...)
	return base64.RawURLEncoding.AppendEncode(dst, code)
}

// digest returns the Digest of a body.
func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// checkBody has the body of r end with an error if it is not the one of a digest.
func checkBody(r *http.Request, want string) error {
	sum, err := base64.RawURLEncoding.DecodeString(want)
	if err != nil || r.ContentLength < 0 {
		return refused(errMalformed.Error())
	}
	r.Body = &signedBody{ReadCloser: r.Body, hash: sha256.New(), left: r.ContentLength, want: sum}
	return nil
}

// A signedBody is the body of a request with a digest. Its last bytes are not read unless all
// of them are the signed ones.
type signedBody struct {
	io.ReadCloser
	hash hash.Hash
	left int64
	want []byte
}

func (b *signedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	_, _ = b.hash.Write(p[:n]) // writing to a hash never fails
	if b.left -= int64(n); b.left <= 0 && !bytes.Equal(b.hash.Sum(nil), b.want) {
		return 0, ErrAltered
	}
	return n, err
}
