package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
)

// Who follows a server is told why it is away, once for each reason, and not while it is waited
// for the first time.
func TestReconnectsTellWhy(t *testing.T) {
	refused, reset := errors.New("connection refused"), errors.New("connection reset \x1b[2J")
	var out bytes.Buffer
	r := &Reconnects{Server: "docs", Out: &out, Cancel: func(err error) { t.Errorf("it ends with %v", err) }}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{refused, ""},
		{nil, ""},
		{refused, "mcpbridge: docs can't be reached: connection refused; trying again\n"},
		{refused, ""},
		{reset, "mcpbridge: docs can't be reached: connection reset \\x1b[2J; trying again\n"},
		{refused, "mcpbridge: docs can't be reached: connection refused; trying again\n"},
		{nil, ""},
		{refused, "mcpbridge: docs can't be reached: connection refused; trying again\n"},
	} {
		out.Reset()
		if r.Dialed(tt.err); out.String() != tt.want {
			t.Errorf("Dialed(%v) tells %q, want %q", tt.err, out.String(), tt.want)
		}
	}
}

// A certificate that is refused will be refused again: following ends, with what to do.
func TestReconnectsEnd(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var out bytes.Buffer
	r := &Reconnects{Server: "docs", Out: &out, Cancel: cancel}
	expired := &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}
	if r.Dialed(expired); ctx.Err() != nil {
		t.Errorf("the first attempt ends it with %v, which who waits for that is told", context.Cause(ctx))
	}
	r.Dialed(nil)
	r.Dialed(expired)
	err := context.Cause(ctx)
	if !errors.As(err, new(*RefusedError)) || !strings.HasPrefix(err.Error(), "docs can't be reached again: tls: failed to verify certificate: x509: certificate has expired") ||
		!strings.HasSuffix(err.Error(), "; its certificate needs renewing, or the clock of this machine setting") || out.Len() > 0 {
		t.Errorf("it ends with %v, and tells %q, want the certificate and what to do", err, out.String())
	}
}
