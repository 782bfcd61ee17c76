package attack

// Connections are what requests go over, kept from one attack to the next, so
// that the next does not begin cold.
type Connections struct{ network network }

// Connect makes the connections for attacks of at most as much load as c's: see
// [Config.Over]. The caller closes them.
func Connect(c Config) *Connections {
	n, _ := workers(c.Members, c.Site)
	return &Connections{newNetwork(c, n)}
}

// Close closes those that are kept.
func (c *Connections) Close() { c.network.close() }

// over is what the attack's requests go over.
func (a *Attack) over() network {
	if a.config.Over == nil {
		return newNetwork(a.config, a.workers)
	}
	n := a.config.Over.network
	before, opened := n.opened(), n.opened
	n.opened, n.close = func() int64 { return opened() - before }, func() {}
	return n
}
