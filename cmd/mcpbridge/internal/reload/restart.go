package reload

import (
	"reflect"

	"github.com/mcpbridge/mcpbridge/internal/config"
	"github.com/mcpbridge/mcpbridge/internal/limits"
)

// liveKeys are the keys whose values apply at once. Those of others count after a restart.
var liveKeys = map[string]bool{
	"include": true, "allow_anonymous": true, "public_url": true, "auth": true, "allowed_origins": true, "allowed_hosts": true, "trusted_proxies": true,
	"state_keys": true, "login_keys": true, "debug_errors": true, "body_timeout": true, "write_timeout": true, "keep_alive": true, "client_idle": true, "drain": true, "drain_delay": true,
	"state_dir": true, "audit": true, "remember": true, "keyring": true, "client_metadata_url": true, "allow_hosts": true, "limits": true, "log.level": true, "replicas.keys": true,
}

// NeedsRestart returns the keys whose values are not those of the start, and which do not
// apply at once.
func NeedsRestart(started, c *config.Config) (keys []string) {
	was, is := reflect.ValueOf(started).Elem(), reflect.ValueOf(c).Elem()
	keys = changedKeys("", was, is)
	if started.Limits.NewConnections != c.Limits.NewConnections {
		keys = append(keys, "limits."+limits.NewConnections.Key)
	}
	if started.Limits.MetricTools != c.Limits.MetricTools {
		keys = append(keys, "limits."+limits.MetricTools.Key)
	}
	return keys
}

// changedKeys returns the keys below a prefix with different values.
func changedKeys(prefix string, was, is reflect.Value) (keys []string) {
	for i := range was.NumField() {
		name := was.Type().Field(i).Tag.Get("koanf")
		key := prefix + name
		switch {
		case name == "" || name == "-" || liveKeys[key]:
		case key == "log":
			keys = append(keys, changedKeys("log.", was.Field(i), is.Field(i))...)
		case key == "replicas" && !was.Field(i).IsNil() && !is.Field(i).IsNil():
			keys = append(keys, changedKeys("replicas.", was.Field(i).Elem(), is.Field(i).Elem())...)
		case !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()):
			keys = append(keys, key)
		}
	}
	return keys
}
