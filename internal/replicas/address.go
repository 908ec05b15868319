package replicas

import "net"

// Address returns a host:port as a URL has it: only an IPv6 address is in brackets. Who does
// not know which kind of address there will be writes brackets for both, as in
// [${POD_IP}]:2528. What is no host:port is returned as it is.
func Address(hostport string) string {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return hostport
	}
	return net.JoinHostPort(host, port)
}
