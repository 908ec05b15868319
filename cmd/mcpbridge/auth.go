package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/mcpbridge/cmd/mcpbridge/internal/output"
	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/config/value"
	"github.com/mcpbridge/mcpbridge/internal/trust/auth"
)

// makeToken gives a configuration that needs one a token for this run, and returns it;
// empty if it needs none.
func makeToken(c *config.Config) string {
	if !c.MakeToken {
		return ""
	}
	token, _ := auth.GenerateToken()
	c.Auth = clientToken(token)
	return token
}

// clientToken accepts a token that was made.
func clientToken(token string) *config.Auth {
	return &config.Auth{Tokens: []config.Token{{Name: "client", Token: token}}}
}

// showToken shows a token that was made, once.
func showToken(w io.Writer, token string) error {
	if token == "" {
		return nil
	}
	_, err := output.Printf(w, "\nClients have to send this header. It is shown once, and lasts as long as mcpbridge runs:\n  Authorization: Bearer %[1]s\nFor the commands above: export TOKEN=%[1]s\nFor one that lasts, write what mcpbridge token prints below auth in the configuration.\n", token)
	return err
}

// A madeToken is what token prints.
type madeToken struct {
	Name   string `json:"name"`
	Token  string `json:"token"`
	SHA256 string `json:"sha256"`
}

func newTokenCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "token [NAME]",
		Short: "Make a token with which a client proves who it is",
		Long: `Prints a random token for a client, and what the configuration has of it: its
SHA-256, from which nobody can tell the token. NAME is the principal that the token
stands for. The token is not kept anywhere: give it to the client, and no one else.`,
		Example: `  mcpbridge token alice
  mcpbridge token alice --json | jq -r .token`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("one name is enough; leave %q out", args[1])
			}
			m := madeToken{Name: "client"}
			if len(args) == 1 {
				m.Name = args[0]
			}
			if !value.IsPrincipal(m.Name) {
				return usageError("%q can't be the name of a principal; use letters, digits and ._@+-, at most 128", m.Name)
			}
			m.Token, m.SHA256 = auth.GenerateToken()
			return m.print(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (m madeToken) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return output.JSON(w, m)
	}
	_, err := output.Printf(w, "The client sends this header:\n  Authorization: Bearer %s\nThe configuration has:\n  auth:\n    tokens:\n      - {name: %s, sha256: %s}\n", m.Token, m.Name, m.SHA256)
	return err
}
