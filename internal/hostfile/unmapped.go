package hostfile

const (
	noFilter   = "mcpbridge does not filter tools: clients see all that the server has"
	noAsking   = "says what the host runs without asking its user; mcpbridge never asks, so it has no effect here"
	noLogin    = "mcpbridge does not log in by OAuth: give it a token below headers, as Authorization: \"Bearer ${TOKEN}\""
	noSandbox  = "mcpbridge does not sandbox commands: they run with all your rights"
	noEffect   = "describes the server to its host and has no effect here"
	noHelper   = "mcpbridge does not run it, and sends none of its headers: write them below headers, secrets as ${VAR} or ${file:/PATH}"
	noDev      = "mcpbridge does not watch or debug servers, so it has no effect here"
	noGrouping = "is how the host shows the server, and has no effect here"
)

// unmapped are the keys of hosts without a counterpart here, with what that means for the
// user.
var unmapped = map[string]string{
	"includeTools": noFilter, "excludeTools": noFilter, "disabledTools": noFilter, "enabledTools": noFilter, "tools": noFilter,
	"alwaysAllow": noAsking, "autoApprove": noAsking, "trust": noAsking,
	"oauth": noLogin, "auth": noLogin, "authProviderType": noLogin, "oauthScopes": noLogin,
	"targetAudience": noLogin, "targetServiceAccount": noLogin,
	"sandboxEnabled": noSandbox, "sandbox": noSandbox,
	"headersHelper": noHelper,
	"dev":           noDev, "watchPaths": noDev,
	"description": noEffect, "version": noEffect, "gallery": noEffect, "name": noEffect, "note": noEffect, "extensionName": noEffect,
	"icon": noGrouping, "alwaysLoad": noGrouping, "chat": noGrouping,
}
