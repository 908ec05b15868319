//go:build linux

package chart

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// each runs a test for what each file below ci makes.
func each(t *testing.T, test func(*testing.T, *release)) {
	t.Helper()
	for name, r := range releases(t) {
		t.Run(name, func(t *testing.T) { test(t, r) })
	}
}

func matches(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return !s.Empty() && s.Matches(labels.Set(set))
}

// selected returns the one kind of pod that a selector is for.
func (r *release) selected(t *testing.T, who string, selector *metav1.LabelSelector) pod {
	t.Helper()
	pods := slices.DeleteFunc(r.pods(), func(p pod) bool { return !matches(t, selector, p.labels) })
	if len(pods) != 1 {
		t.Fatalf("%s selects %d kinds of pods, want one", who, len(pods))
	}
	return pods[0]
}

func (p pod) port(name string) *corev1.ContainerPort {
	for _, c := range p.spec.Containers {
		for i, port := range c.Ports {
			if port.Name == name {
				return &c.Ports[i]
			}
		}
	}
	return nil
}

// Selectors are for the pods that they are meant for, and no others.
func TestSelectors(t *testing.T) {
	each(t, func(t *testing.T, r *release) {
		for _, p := range r.pods() {
			if p.selector != nil && r.selected(t, p.of, p.selector).of != p.of {
				t.Errorf("%s does not select its own pods", p.of)
			}
			for _, c := range p.spec.TopologySpreadConstraints {
				if r.selected(t, "spread of "+p.of, c.LabelSelector).of != p.of {
					t.Errorf("%s is spread beside other pods", p.of)
				}
			}
		}
		for _, b := range r.budgets() {
			r.selected(t, "PodDisruptionBudget "+b.Name, b.Spec.Selector)
		}
	})
}

// Services lead to ports that their pods have.
func TestServicePorts(t *testing.T) {
	each(t, func(t *testing.T, r *release) {
		for _, s := range r.services() {
			p := r.selected(t, "Service "+s.Name, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
			for _, port := range s.Spec.Ports {
				if p.port(port.TargetPort.StrVal) == nil {
					t.Errorf("the port %s of Service %s is none of %s", port.Name, s.Name, p.of)
				}
			}
			if s.Spec.ClusterIP == corev1.ClusterIPNone && !s.Spec.PublishNotReadyAddresses {
				t.Errorf("a pod that drains is not in %s", s.Name)
			}
		}
	})
}

// A policy opens ports by names that its pods have: the peer port and those between nodes
// of NATS to pods of the same kind alone, that of NATS to mcpbridge, and the admin port to
// whom the values name.
func TestNetworkPolicies(t *testing.T) {
	each(t, func(t *testing.T, r *release) {
		gateway := r.deployment(t).Spec.Selector.MatchLabels
		for _, policy := range r.policies() {
			p := r.selected(t, "NetworkPolicy "+policy.Name, &policy.Spec.PodSelector)
			if strings.HasSuffix(policy.Name, "-egress") {
				continue
			}
			if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
				t.Errorf("%s is for %q", policy.Name, policy.Spec.PolicyTypes)
			}
			opened := make(map[string][]networkingv1.NetworkPolicyPeer)
			for _, rule := range policy.Spec.Ingress {
				if len(rule.Ports) != 1 {
					t.Fatalf("%s opens %d ports in one rule", policy.Name, len(rule.Ports))
				}
				name := rule.Ports[0].Port.StrVal
				if p.port(name) == nil {
					t.Errorf("%s opens %q, which %s does not have", policy.Name, name, p.of)
				}
				opened[name] = rule.From
			}
			for name, want := range map[string]map[string]string{"peer": gateway, "cluster": p.labels, "nats": gateway} {
				if from, ok := opened[name]; ok && (len(from) != 1 || from[0].PodSelector == nil || from[0].NamespaceSelector != nil || !mapsEqual(from[0].PodSelector.MatchLabels, want)) {
					t.Errorf("%s opens %s to %v", policy.Name, name, from)
				}
			}
			if from, ok := opened["admin"]; ok && len(from) == 0 {
				t.Errorf("%s opens admin to all", policy.Name)
			}
			if _, ok := opened["monitor"]; ok {
				t.Errorf("%s opens the monitoring of NATS", policy.Name)
			}
		}
	})
}

func mapsEqual(a, b map[string]string) bool { return labels.Equals(a, b) }

// The policy is for all pods but where the values are against it, and opens what they say.
func TestWhatPoliciesOpen(t *testing.T) {
	for name, want := range map[string]string{
		"quick": "release-mcpbridge-nats:nats,cluster release-mcpbridge:http,peer", "redis": "release-mcpbridge:http,peer", "dns": "",
		"tls": "release-mcpbridge:http,peer,admin", "one": "release-bridge:http", "all": "gateway-nats:nats,cluster gateway:http,peer",
	} {
		var got []string
		for _, p := range newRelease(t, readValues(t, valuesFiles(t)[name])).policies() {
			var ports []string
			for _, rule := range p.Spec.Ingress {
				ports = append(ports, rule.Ports[0].Port.StrVal)
			}
			if len(p.Spec.Ingress) > 0 {
				got = append(got, p.Name+":"+strings.Join(ports, ","))
			}
		}
		if slices.Sort(got); strings.Join(got, " ") != want {
			t.Errorf("%s opens %q, want %q", name, got, want)
		}
	}
}

// A rolling update starts a pod before it stops one, and a node can be drained.
func TestRolling(t *testing.T) {
	each(t, func(t *testing.T, r *release) {
		d := r.deployment(t)
		u := d.Spec.Strategy.RollingUpdate
		if u == nil || *u.MaxUnavailable != intstr.FromInt32(0) || *u.MaxSurge != intstr.FromInt32(1) {
			t.Errorf("the Deployment rolls by %v", u)
		}
		if n := d.Spec.Replicas; len(r.scalers()) == 0 && (n == nil || float64(*n) != r.value("replicaCount", 3.0)) {
			t.Errorf("%v replicas", n)
		}
		for _, b := range r.budgets() {
			if b.Spec.MinAvailable != nil || *b.Spec.MaxUnavailable != intstr.FromInt32(1) {
				t.Errorf("%s = %v: want one pod at a time", b.Name, b.Spec)
			}
		}
	})
}

func (r *release) value(key string, otherwise any) any {
	if v, ok := r.values[key]; ok {
		return v
	}
	return otherwise
}

// A pod that is stopped has the time that mcpbridge takes, and is seen not to be ready
// while it still serves.
func TestEndings(t *testing.T) {
	each(t, func(t *testing.T, r *release) {
		config := r.config(t)
		delay, drain := duration(t, config["drain_delay"]), duration(t, config["drain"])
		spec := r.deployment(t).Spec.Template.Spec
		if grace := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second; grace < delay+drain+10*time.Second {
			t.Errorf("the pod has %v for %v and %v", grace, delay, drain)
		}
		probe := spec.Containers[0].ReadinessProbe
		if seen := time.Duration(probe.PeriodSeconds*probe.FailureThreshold) * time.Second; seen >= delay {
			t.Errorf("it takes %v until the pod is not ready, and drain_delay is %v", seen, delay)
		}
	})
}

func duration(t *testing.T, v any) time.Duration {
	t.Helper()
	text, _ := v.(string)
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Metrics are scraped from each pod, by the job that the alerts expect.
func TestServiceMonitor(t *testing.T) {
	monitors := 0
	each(t, func(t *testing.T, r *release) {
		for _, m := range r.monitors() {
			monitors++
			var of []*corev1.Service
			for _, s := range r.services() {
				if matches(t, &m.Spec.Selector, s.Labels) {
					of = append(of, s)
				}
			}
			if len(of) != 1 || of[0].Spec.ClusterIP != corev1.ClusterIPNone {
				t.Fatalf("it is for %v", of)
			}
			if job := of[0].Labels[m.Spec.JobLabel]; job != "mcpbridge" {
				t.Errorf("the job is %q", job)
			}
			named := func(p corev1.ServicePort) bool { return p.Name == m.Spec.Endpoints[0].Port }
			if !slices.ContainsFunc(of[0].Spec.Ports, named) {
				t.Errorf("%s has no port %s", of[0].Name, m.Spec.Endpoints[0].Port)
			}
		}
	})
	if monitors != 4 {
		t.Errorf("%d monitors, want those of four files", monitors)
	}
}

// Names and ports are such that Kubernetes takes them.
func TestNames(t *testing.T) {
	each(t, func(t *testing.T, r *release) {
		for _, o := range r.objects {
			m := o.(metav1.Object)
			if errs := validation.IsDNS1123Label(m.GetName()); errs != nil || m.GetNamespace() != "" {
				t.Errorf("%s in %q: %q", m.GetName(), m.GetNamespace(), errs)
			}
			for key, v := range m.GetLabels() {
				if errs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(v)...); errs != nil {
					t.Errorf("the label %s: %s: %q", key, v, errs)
				}
			}
		}
		for _, p := range r.pods() {
			for _, c := range p.spec.Containers {
				errs := validation.IsDNS1123Label(c.Name)
				for _, port := range c.Ports {
					errs = append(errs, validation.IsValidPortName(port.Name)...)
				}
				if errs != nil {
					t.Errorf("%s of %s: %q", c.Name, p.of, errs)
				}
			}
		}
		if kinds := r.kinds(); len(slices.Compact(slices.Clone(kinds))) != len(kinds) {
			t.Errorf("some are there twice: %q", kinds)
		}
	})
}
