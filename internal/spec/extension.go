package spec

import "strings"

// Undefined reports whether requests of method are neither the specification's, in any
// revision, nor those of tasks: they belong to an extension, or to a revision to come.
func Undefined(method string) bool {
	return !Defined(method) && !strings.HasPrefix(method, MethodTasksPrefix)
}

// UndefinedNotification reports whether notifications of method from a server are
// none of the specification's, in any revision.
func UndefinedNotification(method string) bool {
	switch method {
	case NotifyProgress, NotifyMessage, NotifyCancelled,
		NotifyToolsListChanged, NotifyPromptsListChanged, NotifyResourcesListChanged,
		NotifyResourceUpdated, NotifyElicitationComplete, NotifyAcknowledged:
		return false
	}
	return true
}
