package handover

import (
	"encoding/json"
	"errors"
	"net/netip"

	"github.com/mcpbridge/mcpbridge/internal/mcp"
	"github.com/mcpbridge/mcpbridge/internal/spec"
	legacyfront "github.com/mcpbridge/mcpbridge/legacy/front"
)

// A parcel is what one request hands over. Members that a later version adds are skipped.
type parcel struct {
	Sessions []record `json:"sessions"`
}

// A receipt is the response: for each session of the parcel why it was refused, or an empty
// string.
type receipt struct {
	Refused []string `json:"refused"`
}

var errShort = errors.New("its response is too short")

// refusal returns why the session at i is not gone on with; nil if it is. err is that of
// sending it.
func (r *receipt) refusal(i int, err error) error {
	switch {
	case err != nil:
		return err
	case i >= len(r.Refused):
		return errShort
	case r.Refused[i] != "":
		return errors.New(r.Refused[i])
	}
	return nil
}

// A record is one session.
type record struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Principal    string          `json:"principal"`
	Net          string          `json:"net,omitempty"`
	Identity     *mcp.Identity   `json:"identity,omitempty"`
	Token        string          `json:"token,omitempty"` // of the identity
	Revision     string          `json:"revision"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	ClientInfo   json.RawMessage `json:"client_info,omitempty"`
	Offered      offered         `json:"offered"`
	Opened       int64           `json:"opened"`
	Level        string          `json:"level,omitempty"`
	Lists        bool            `json:"lists,omitempty"`
	URIs         []string        `json:"uris,omitempty"`
}

// offered is what the client was told of the server.
type offered struct {
	Tools     bool `json:"tools,omitempty"` // listChanged
	Prompts   bool `json:"prompts,omitempty"`
	Resources bool `json:"resources,omitempty"`
	Subscribe bool `json:"subscribe,omitempty"`
	Logging   bool `json:"logging,omitempty"`
	TaskCalls bool `json:"task_calls,omitempty"`
}

func newRecord(h legacyfront.Handover) record {
	r := record{
		ID: string(h.ID), Name: h.Name, Principal: string(h.Opener.Principal), Identity: h.Opener.Identity, Token: h.Opener.Identity.Token(),
		Revision: string(h.Revision), Capabilities: h.Capabilities, ClientInfo: h.ClientInfo,
		Offered: offered{h.Offered.Lists.Tools, h.Offered.Lists.Prompts, h.Offered.Lists.Resources, h.Offered.Subscribe, h.Offered.Logging, h.Offered.TaskCalls},
		Opened:  h.Opened, Level: string(h.Level), Lists: h.Lists, URIs: h.URIs,
	}
	if h.Opener.Net.IsValid() {
		r.Net = h.Opener.Net.String()
	}
	return r
}

// handover returns the session of a record.
func (r *record) handover() (legacyfront.Handover, error) {
	h := legacyfront.Handover{
		ID: legacyfront.SessionID(r.ID), Name: r.Name, Revision: spec.Revision(r.Revision), Capabilities: r.Capabilities, ClientInfo: r.ClientInfo,
		Offered: mcp.ServerCapabilities{Lists: mcp.Lists{Tools: r.Offered.Tools, Prompts: r.Offered.Prompts, Resources: r.Offered.Resources},
			Subscribe: r.Offered.Subscribe, Logging: r.Offered.Logging, TaskCalls: r.Offered.TaskCalls},
		Opened: r.Opened, Level: spec.LogLevel(r.Level), Lists: r.Lists, URIs: r.URIs,
	}
	h.Opener = mcp.Sender{Share: mcp.Share{Principal: mcp.Principal(r.Principal)}, Identity: r.Identity}
	if r.Token != "" && r.Identity != nil {
		h.Opener.Identity.SetToken(r.Token)
	}
	if r.Net == "" {
		return h, nil
	}
	var err error
	h.Opener.Net, err = netip.ParsePrefix(r.Net)
	return h, err
}

// size is about how long a record is as text, in bytes.
func (r *record) size() int {
	n := 512 + len(r.Capabilities) + len(r.ClientInfo) + len(r.Token)
	for _, uri := range r.URIs {
		n += len(uri) + 4
	}
	return n
}
