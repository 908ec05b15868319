package spec

// Error codes. JSON-RPC reserves the first group, the specification the second;
// the third are codes that legacy revisions or their SDKs use.
//
// Spec: 2026-07-28, basic/index, Error Codes.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603

	CodeHeaderMismatch     = -32020 // modern: a header differs from the body
	CodeMissingCapability  = -32021 // modern: data.requiredCapabilities
	CodeUnsupportedVersion = -32022 // modern: data.supported, data.requested

	CodeSessionNotFound  = -32001 // legacy: unknown or ended session, with HTTP 404
	CodeResourceNotFound = -32002 // legacy: data.uri
	CodeURLElicitation   = -32042 // legacy: a URL must be visited first
)

// Reserved reports whether code lies in the range that the modern revision
// reserves for errors it defines itself. A legacy server's code there means
// something of its own.
func Reserved(code int64) bool {
	return code <= -32020 && code >= -32099
}

// ModernError reports whether only a server of the modern era answers with code.
//
// Spec: 2026-07-28, basic/index, Error Codes.
func ModernError(code int64) bool {
	switch code {
	case CodeHeaderMismatch, CodeMissingCapability, CodeUnsupportedVersion:
		return true
	}
	return false
}
