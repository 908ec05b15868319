//go:build !unix

package httpserver

import (
	"context"
	"errors"
	"net"
)

func listenPrivately(context.Context, string) (net.Listener, error) {
	return nil, errors.New("sockets can't be kept from other users on this system")
}
