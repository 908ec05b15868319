//go:build linux

package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// of returns the release of a file below ci.
func of(t *testing.T, name string) *release {
	t.Helper()
	return newRelease(t, readValues(t, valuesFiles(t)[name]))
}

func (r *release) scalers() []*autoscalingv2.HorizontalPodAutoscaler {
	return all[*autoscalingv2.HorizontalPodAutoscaler](r)
}

// hosts are the names that mcpbridge accepts in Host headers.
func (r *release) hosts(t *testing.T) (hosts []string) {
	t.Helper()
	for _, h := range r.config(t)["allowed_hosts"].([]any) {
		hosts = append(hosts, h.(string))
	}
	return hosts
}

// entrance returns the port of the Service that clients use.
func (r *release) entrance(t *testing.T, name string) corev1.ServicePort {
	t.Helper()
	s := named[*corev1.Service](r, name)
	if s == nil || s.Spec.ClusterIP == corev1.ClusterIPNone || len(s.Spec.Ports) != 1 {
		t.Fatalf("%s is no Service for clients: %v", name, s)
	}
	return s.Spec.Ports[0]
}

// An Ingress sends all of its hosts to the Service of clients, with TLS, and mcpbridge takes
// their names.
func TestIngress(t *testing.T) {
	r := of(t, "ingress")
	found := all[*networkingv1.Ingress](r)
	if len(found) != 1 {
		t.Fatalf("%d Ingresses, want one", len(found))
	}
	in := found[0]
	want := []string{"mcp.example.com", "mcp.example.org"}
	if *in.Spec.IngressClassName != "nginx" || in.Annotations["nginx.ingress.kubernetes.io/proxy-body-size"] != "4m" {
		t.Errorf("it is of the class %s, with %v", *in.Spec.IngressClassName, in.Annotations)
	}
	if len(in.Spec.TLS) != 1 || in.Spec.TLS[0].SecretName != "mcp-example-com" || !slices.Equal(in.Spec.TLS[0].Hosts, want) {
		t.Errorf("it has TLS by %v", in.Spec.TLS)
	}
	var hosts []string
	for _, rule := range in.Spec.Rules {
		hosts = append(hosts, rule.Host)
		p := rule.HTTP.Paths[0]
		if len(rule.HTTP.Paths) != 1 || p.Path != "/" || *p.PathType != networkingv1.PathTypePrefix || p.Backend.Service.Port.Name != r.entrance(t, p.Backend.Service.Name).Name {
			t.Errorf("%s leads to %v", rule.Host, rule.HTTP.Paths)
		}
	}
	if !slices.Equal(hosts, want) {
		t.Errorf("it is for %q, want %q", hosts, want)
	}
	for _, host := range append(want, "release-mcpbridge.tools.svc.k8s.example.com") {
		if !slices.Contains(r.hosts(t), host) {
			t.Errorf("mcpbridge takes %q as hosts, want %s", r.hosts(t), host)
		}
	}
	if of := all[*networkingv1.Ingress](of(t, "quick")); len(of) > 0 {
		t.Errorf("there is an Ingress by default: %v", of)
	}
}

// An HTTPRoute sends its names from a Gateway to the port of the Service, and ends no stream.
func TestHTTPRoute(t *testing.T) {
	r := of(t, "gateway")
	found := all[*gateway.HTTPRoute](r)
	if len(found) != 1 {
		t.Fatalf("%d HTTPRoutes, want one", len(found))
	}
	spec := found[0].Spec
	parent := spec.ParentRefs[0]
	if len(spec.ParentRefs) != 1 || parent.Name != "public" || *parent.Namespace != "gateways" || *parent.SectionName != "https" {
		t.Errorf("its parents are %v", spec.ParentRefs)
	}
	if !slices.Equal(spec.Hostnames, []gateway.Hostname{"mcp.example.com"}) || !slices.Contains(r.hosts(t), "mcp.example.com") {
		t.Errorf("it is for %q, and mcpbridge takes %q", spec.Hostnames, r.hosts(t))
	}
	rule := spec.Rules[0]
	if len(spec.Rules) != 1 || len(rule.Matches) != 1 || *rule.Matches[0].Path.Value != "/" || *rule.Matches[0].Path.Type != gateway.PathMatchPathPrefix {
		t.Errorf("it matches %v", spec.Rules)
	}
	if *rule.Timeouts.Request != "0s" {
		t.Errorf("a request may take %s", *rule.Timeouts.Request)
	}
	if to := rule.BackendRefs[0]; len(rule.BackendRefs) != 1 || *to.Port != r.entrance(t, string(to.Name)).Port {
		t.Errorf("it leads to %v", rule.BackendRefs)
	}
	if of := all[*gateway.HTTPRoute](of(t, "quick")); len(of) > 0 {
		t.Errorf("there is an HTTPRoute by default: %v", of)
	}
}

// egress returns what a policy lets its pods connect to: ports, and the labels of pods there.
func egress(p *networkingv1.NetworkPolicy) map[string]map[string]string {
	to := make(map[string]map[string]string)
	for _, rule := range p.Spec.Egress {
		for _, port := range rule.Ports {
			at := string(*port.Protocol) + " " + port.Port.String()
			to[at] = nil
			if len(rule.To) == 1 && rule.To[0].PodSelector != nil && rule.To[0].NamespaceSelector == nil {
				to[at] = rule.To[0].PodSelector.MatchLabels
			}
		}
	}
	return to
}

// Pods that may not connect to everything may to DNS, the other replicas, NATS and what the
// values say; and nodes of NATS to each other.
func TestEgress(t *testing.T) {
	r := of(t, "ingress")
	policy := named[*networkingv1.NetworkPolicy](r, "release-mcpbridge-egress")
	nodes := named[*networkingv1.NetworkPolicy](r, "release-mcpbridge-nats-egress")
	bridge, nats := r.deployment(t).Spec.Selector.MatchLabels, all[*appsv1.StatefulSet](r)[0].Spec.Selector.MatchLabels
	for _, tt := range []struct {
		policy *networkingv1.NetworkPolicy
		of     map[string]string
		want   map[string]map[string]string
	}{
		{policy, bridge, map[string]map[string]string{"UDP 53": nil, "TCP 53": nil, "TCP 2528": bridge, "TCP 4222": nats, "TCP 443": nil}},
		{nodes, nats, map[string]map[string]string{"UDP 53": nil, "TCP 53": nil, "TCP 6222": nats}},
	} {
		if !mapsEqual(tt.policy.Spec.PodSelector.MatchLabels, tt.of) || !slices.Equal(tt.policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}) {
			t.Errorf("%s is for %v of %v", tt.policy.Name, tt.policy.Spec.PolicyTypes, tt.policy.Spec.PodSelector)
		}
		if got := egress(tt.policy); !maps.EqualFunc(got, tt.want, mapsEqual) {
			t.Errorf("%s lets connect to %v, want %v", tt.policy.Name, got, tt.want)
		}
		if dns := tt.policy.Spec.Egress[0]; len(dns.To) != 1 || dns.To[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "kube-system" {
			t.Errorf("%s lets ask %v for names", tt.policy.Name, dns.To)
		}
	}
	if last := policy.Spec.Egress[len(policy.Spec.Egress)-1]; len(last.To) != 1 || last.To[0].IPBlock.CIDR != "0.0.0.0/0" {
		t.Errorf("servers are reached by %v", last)
	}
	if dns := named[*networkingv1.NetworkPolicy](of(t, "generate"), "release-mcpbridge-egress").Spec.Egress[0]; len(dns.To) != 0 {
		t.Errorf("without values, DNS is %v", dns.To)
	}
}

// What the policy of one pod lets in, that of the other lets out: the ports are those that
// pods have.
func TestEgressPorts(t *testing.T) {
	r := of(t, "ingress")
	ports := make(map[int32]bool)
	for _, p := range r.pods() {
		for _, c := range p.spec.Containers {
			for _, port := range c.Ports {
				ports[port.ContainerPort] = true
			}
		}
	}
	for _, p := range r.policies() {
		for _, rule := range p.Spec.Egress {
			if n := rule.Ports[0].Port.IntVal; n != 53 && n != 443 && !ports[n] {
				t.Errorf("%s leads to %d, where no pod listens", p.Name, n)
			}
		}
	}
}

// Replicas follow the load slowly, and their number is nobody else's: an upgrade leaves as
// many as there are.
func TestAutoscaling(t *testing.T) {
	values := readValues(t, valuesFiles(t)["ingress"])
	r := newRelease(t, values)
	spec := r.scalers()[0].Spec
	if ref := spec.ScaleTargetRef; ref.Kind != "Deployment" || ref.APIVersion != "apps/v1" || ref.Name != r.deployment(t).Name {
		t.Errorf("it scales %v", ref)
	}
	if *spec.MinReplicas != 2 || spec.MaxReplicas != 6 || len(spec.Metrics) != 2 || spec.Metrics[1].Pods == nil {
		t.Errorf("it scales from %d to %d by %v", *spec.MinReplicas, spec.MaxReplicas, spec.Metrics)
	}
	by := spec.Metrics[0].ContainerResource
	if by.Name != corev1.ResourceCPU || *by.Target.AverageUtilization != 60 || by.Container != r.deployment(t).Spec.Template.Spec.Containers[0].Name {
		t.Errorf("it scales by %v", by)
	}
	if down := spec.Behavior.ScaleDown; *down.StabilizationWindowSeconds != 1800 || len(down.Policies) != 1 {
		t.Errorf("it scales in by %v", down)
	}
	if n := r.deployment(t).Spec.Replicas; n != nil {
		t.Errorf("the Deployment has %d replicas itself", *n)
	}
	five := int32(5)
	there := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: r.deployment(t).Name, Namespace: "tools"}, Spec: appsv1.DeploymentSpec{Replicas: &five},
	}
	if n := upgraded(t, values, there).deployment(t).Spec.Replicas; n == nil || *n != 5 {
		t.Errorf("an upgrade of 5 replicas makes them %v", n)
	}
}

// Sessions end with a replica, so their number follows the load only where the values say
// so, and there slowly, and values.yaml says what it costs.
func TestAutoscalingIsOff(t *testing.T) {
	if found := of(t, "quick").scalers(); len(found) > 0 {
		t.Errorf("it scales by default: %v", found)
	}
	r := newRelease(t, valuesOf(t, `{config: {allow_anonymous: true}, autoscaling: {enabled: true}}`))
	down := r.scalers()[0].Spec.Behavior.ScaleDown
	if *down.StabilizationWindowSeconds < 600 || down.Policies[0].Value != 1 || down.Policies[0].PeriodSeconds < 300 {
		t.Errorf("it scales in by %v", down)
	}
	text, _, _ := strings.Cut(readFile(t, folder+"/values.yaml"), "\nautoscaling:")
	comment := text[strings.LastIndex(text, "\n\n"):]
	if !strings.Contains(comment, "Off by default") || !strings.Contains(comment, "404") {
		t.Errorf("values.yaml says of autoscaling:%s", comment)
	}
}

// Volumes, containers and annotations of the values are where they say, and the chart's own
// beside them.
func TestExtras(t *testing.T) {
	r := of(t, "ingress")
	spec := r.deployment(t).Spec.Template.Spec
	if v := volume(t, spec, "ca"); v.Secret == nil || v.Secret.SecretName != "company-ca" {
		t.Errorf("the volume is %v", v)
	}
	mounted := func(m corev1.VolumeMount) bool { return m.Name == "ca" && m.MountPath == "/etc/company" }
	if c := spec.Containers[0]; c.Name != "mcpbridge" || !slices.ContainsFunc(c.VolumeMounts, mounted) {
		t.Errorf("%s mounts %v", c.Name, c.VolumeMounts)
	}
	if len(spec.Containers) != 2 || spec.Containers[1].Name != "proxy" || len(spec.InitContainers) != 1 || spec.InitContainers[0].Name != "warm" {
		t.Errorf("the containers are %v after %v", spec.Containers, spec.InitContainers)
	}
	for _, o := range r.objects {
		if m := o.(metav1.Object); m.GetAnnotations()["example.com/owner"] != "platform" {
			t.Errorf("%T %s has the annotations %v", o, m.GetName(), m.GetAnnotations())
		}
	}
	if a := r.deployment(t).Annotations; a["example.com/deploy"] != "canary" {
		t.Errorf("the Deployment has %v", a)
	}
	if a := all[*corev1.ServiceAccount](r)[0].Annotations; a["example.com/role"] != "mcp" {
		t.Errorf("the ServiceAccount has %v", a)
	}
}
