package hostfile

const (
	noAsking   = "says what the host runs without asking its user; mcpbridge never asks, so it has no effect here"
	ownLogin   = "has no effect here: write upstream_auth: {oauth: {shared_identity: true}}, and run mcpbridge login NAME -c FILE; or give it a token below headers, as Authorization: \"Bearer ${TOKEN}\""
	noSandbox  = "mcpbridge does not sandbox commands: they run with all your rights"
	noEffect   = "describes the server to its host and has no effect here"
	noHelper   = "mcpbridge does not run it, and sends none of its headers: write them below headers, secrets as ${VAR} or ${file:/PATH}"
	noDev      = "mcpbridge does not watch or debug servers, so it has no effect here"
	noFailing  = "says what the host does if the server does not start, and has no effect here: mcpbridge serves the others"
	noParallel = "says what the host may call at once; mcpbridge passes on what it is asked, so it has no effect here"
	noRemote   = "says on which machine the host runs it; mcpbridge runs it on its own"
	noGrouping = "is how the host shows the server, and has no effect here"
)

// unmapped are the keys of hosts without a counterpart here, with what that means for the
// user.
var unmapped = map[string]string{
	"alwaysAllow": noAsking, "autoApprove": noAsking, "trust": noAsking,
	"oauth": ownLogin, "auth": ownLogin, "authProviderType": ownLogin, "oauthScopes": ownLogin,
	"targetAudience": ownLogin, "targetServiceAccount": ownLogin,
	"sandboxEnabled": noSandbox, "sandbox": noSandbox,
	"headersHelper": noHelper,
	"dev":           noDev, "watchPaths": noDev,
	"description": noEffect, "version": noEffect, "gallery": noEffect, "name": noEffect, "note": noEffect, "extensionName": noEffect,
	"required": noFailing, "supports_parallel_tool_calls": noParallel,
	"default_tools_approval_mode": noAsking, "scopes": ownLogin, "oauth_resource": ownLogin,
	"experimental_environment": noRemote, "remote": noRemote,
	"source": noEffect,
	"icon":   noGrouping, "alwaysLoad": noGrouping, "chat": noGrouping,
}
