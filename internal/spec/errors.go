package spec

// Error codes. JSON-RPC defines the first group, and the modern revision the second.
// Legacy revisions or their SDKs use the third.
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

// Reserved reports whether code is in the range that the modern revision reserves for its
// own errors. A legacy server's code in this range has another meaning.
func Reserved(code int64) bool {
	return code <= -32020 && code >= -32099
}

// ModernError reports whether only servers of the modern era respond with code.
//
// Spec: 2026-07-28, basic/index, Error Codes.
func ModernError(code int64) bool {
	switch code {
	case CodeHeaderMismatch, CodeMissingCapability, CodeUnsupportedVersion:
		return true
	}
	return false
}

// DefinedCode reports whether a specification, or JSON-RPC, says what code means.
func DefinedCode(code int64) bool {
	switch code {
	case CodeParse, CodeInvalidRequest, CodeMethodNotFound, CodeInvalidParams, CodeInternal,
		CodeSessionNotFound, CodeResourceNotFound, CodeURLElicitation:
		return true
	}
	return ModernError(code)
}
