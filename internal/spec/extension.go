package spec

import "strings"

// Undefined reports whether no revision of the specification and no revision of tasks
// defines requests of method: they belong to an extension or to a future revision.
func Undefined(method string) bool {
	return !Defined(method) && !strings.HasPrefix(method, MethodTasksPrefix)
}

// UndefinedNotification reports whether no revision of the specification defines
// notifications of method from a server.
func UndefinedNotification(method string) bool {
	switch method {
	case NotifyProgress, NotifyMessage, NotifyCancelled,
		NotifyToolsListChanged, NotifyPromptsListChanged, NotifyResourcesListChanged,
		NotifyResourceUpdated, NotifyElicitationComplete, NotifyAcknowledged:
		return false
	}
	return true
}
