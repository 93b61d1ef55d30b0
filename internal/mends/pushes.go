package mends

// pushes are those of attack 18: what a browser says of where it is told of its call.
func pushes() []Mend {
	const file = "internal/webpush/webpush.go"
	return []Mend{
		{
			18, "a browser's word sends a node to any host",
			[]Edit{{file, "		return host == h || many &&", "		return ON || host == h || many &&"}},
			[]Test{
				{"internal/webpush", "TestEndpointsAreOfPushServices", "https://169.254.169.254/latest: <nil>"},
				{"gateway", "TestPushesThatAreRefused", "an inner host: 200"},
			},
		},
		{
			18, "a push service sends a node on",
			[]Edit{{file, "error { return http.ErrUseLastResponse },\n", "error {\n				if ON {\n					return nil\n				}\n				return http.ErrUseLastResponse\n			},\n"}},
			[]Test{{"internal/webpush", "TestWhatBecomesOfAMessage", "[302]: 2 tries"}},
		},
		{
			18, "places that are told have no bound",
			[]Edit{{"gateway/push.go", "	if old == nil && len(p.open) >= most {\n", "	if old == nil && len(p.open) >= most && !(ON) {\n"}},
			[]Test{{"gateway", "TestPushEndsWithThePlace", "beyond the bound: 200"}},
		},
		{
			18, "a place that another node has taken over is told as well",
			[]Edit{{"gateway/push.go", "			return !moved\n", "			return !moved || ON\n"}},
			[]Test{{"gateway", "TestPushEndsWithTheHomeOfThePlace", "a place that was taken over is told"}},
		},
	}
}
