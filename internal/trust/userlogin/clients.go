package userlogin

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcpbridge/mcpbridge/internal/replicas"
	"github.com/mcpbridge/mcpbridge/internal/trust/login"
)

// clients are those that were registered on the way, for the pages of one gateway: all
// principals and replicas are the same client.
type clients struct{ *Logins }

func (c clients) key(issuer string) string {
	text, _ := json.Marshal([]string{issuer, c.redirect()}) // marshaling texts never fails
	return clientKey + replicas.Key(string(text))
}

// Client implements [login.Clients]. One that can't be read is registered anew.
func (c clients) Client(ctx context.Context, issuer string) (*login.Client, error) {
	key := c.key(issuer)
	text, err := c.at().Kept(ctx, key)
	if errors.Is(err, replicas.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(text) < keyLen || string(text[:keyLen]) != key {
		return nil, nil
	}
	plain, err := c.sealer.open(forClients, key, text[keyLen:])
	if err != nil {
		return nil, nil
	}
	out := new(login.Client)
	if json.Unmarshal(plain, out) != nil {
		return nil, nil
	}
	return out, nil
}

// KeepClient implements [login.Clients].
func (c clients) KeepClient(ctx context.Context, issuer string, client *login.Client) error {
	plain, err := json.Marshal(client)
	if err != nil {
		return err
	}
	key := c.key(issuer)
	return c.at().Keep(ctx, key, append([]byte(key), c.sealer.seal(forClients, key, plain)...))
}

// Lock implements [login.Clients].
func (c clients) Lock(ctx context.Context, issuer string) (unlock func(), err error) {
	return c.at().Lock(ctx, c.key(issuer))
}

// DropClient implements [login.Clients].
func (c clients) DropClient(ctx context.Context, issuer, id string) error {
	kept, err := c.Client(ctx, issuer)
	if err != nil || kept == nil || kept.ID != id {
		return err
	}
	c.opts.Logger.Warn("the authorization server does not seem to know mcpbridge any more: it is registered anew", "issuer", issuer)
	return c.at().Discard(ctx, c.key(issuer))
}
