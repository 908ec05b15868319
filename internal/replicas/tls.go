package replicas

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// SpeaksTLS reports whether a server at an address begins with TLS. It is asked where a
// connection without TLS has failed, to say why. A machine that is busy may take a second for a handshake.
func SpeaksTLS(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	host, _, _ := net.SplitHostPort(addr)
	d := tls.Dialer{Config: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = c.Close() // nothing was sent
		return true
	}
	return errors.As(err, new(*tls.CertificateVerificationError)) || IsTLSRefusal(err)
}

// IsTLSRefusal reports whether err is the other side's, who does not go on with TLS.
func IsTLSRefusal(err error) bool {
	op := (*net.OpError)(nil)
	return errors.As(err, &op) && op.Op == "remote error"
}
