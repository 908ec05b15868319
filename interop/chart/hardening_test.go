//go:build linux

package chart

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// Pods pass where a namespace admits but what the Pod Security Standards call restricted.
func TestPodSecurityStandards(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	each(t, func(t *testing.T, r *release) {
		for _, p := range r.pods() {
			results := evaluator.EvaluatePod(restricted, &metav1.ObjectMeta{Labels: p.labels}, p.spec)
			if all := policy.AggregateCheckResults(results); !all.Allowed || len(results) == 0 {
				t.Errorf("%s is refused by %d checks: %s", p.of, len(results), all.ForbiddenDetail())
			}
		}
	})
}

// A process in a pod is not root, may write to nothing but its volumes, has no call of the
// kernel that the runtime's profile leaves out, no privilege, and no token of the cluster.
func TestPodsAreRestricted(t *testing.T) {
	each(t, func(t *testing.T, r *release) {
		for _, p := range r.pods() {
			s := p.spec.SecurityContext
			if !*s.RunAsNonRoot || *s.RunAsUser == 0 || *s.RunAsGroup == 0 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s runs as %v", p.of, s)
			}
			if p.spec.AutomountServiceAccountToken == nil || *p.spec.AutomountServiceAccountToken {
				t.Errorf("%s has a token", p.of)
			}
			if p.spec.HostNetwork || p.spec.HostPID || p.spec.HostIPC {
				t.Errorf("%s shares the host", p.of)
			}
			for _, c := range slices.Concat(p.spec.InitContainers, p.spec.Containers) {
				testRestricted(t, p.of, c)
			}
		}
	})
}

func testRestricted(t *testing.T, of string, c corev1.Container) {
	t.Helper()
	s := c.SecurityContext
	if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Privileged != nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || s.Capabilities.Add != nil {
		t.Errorf("%s in %s may do %v", c.Name, of, s)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("%s in %s has the resources %v", c.Name, of, c.Resources)
	}
}

// Kubernetes sets MCPBRIDGE_PORT for a Service of the name mcpbridge, which would be a key
// that the configuration does not have.
func TestNoServiceLinks(t *testing.T) {
	each(t, func(t *testing.T, r *release) {
		for _, p := range r.pods() {
			if p.spec.EnableServiceLinks == nil || *p.spec.EnableServiceLinks {
				t.Errorf("%s gets the addresses of Services as variables", p.of)
			}
		}
	})
	dir := layOut(t, newRelease(t, readValues(t, valuesFiles(t)["one"])), "10.77.0.11")
	if err := dir.check(t); err != nil {
		t.Fatal(err)
	}
	dir.env = append(dir.env, "MCPBRIDGE_PORT=tcp://10.0.0.1:2526")
	if err := dir.check(t); err == nil {
		t.Error("MCPBRIDGE_PORT is no key any more: is enableServiceLinks needed?")
	}
}

// No secret is in a ConfigMap, in a pod's environment or in its arguments.
func TestSecretsAreInSecrets(t *testing.T) {
	each(t, func(t *testing.T, r *release) {
		for _, s := range all[*corev1.Secret](r) {
			for key, secret := range s.Data {
				if len(secret) < 32 {
					t.Errorf("%s has %d bytes", key, len(secret))
				}
				for _, o := range r.objects {
					if _, ok := o.(*corev1.Secret); !ok && contains(t, o, string(secret)) {
						t.Errorf("%s is in %T", key, o)
					}
				}
			}
		}
	})
}
