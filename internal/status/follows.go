package status

// Follows says who follows what: clients, topics, and the servers whose topics they are.
type Follows struct {
	Followers []Follower `json:"followers"`
	Topics    []Topic    `json:"topics"`
	Edges     []Edge     `json:"edges"`
	// FollowersLeft, TopicsLeft and EdgesLeft are not listed. Those that are have the most pairs.
	FollowersLeft int `json:"followers_left,omitempty"`
	TopicsLeft    int `json:"topics_left,omitempty"`
	EdgesLeft     int `json:"edges_left,omitempty"`
	// Sampled says that the numbers of Followers and Edges are projected from a part.
	Sampled bool `json:"sampled,omitempty"`
}

// A Follower is a client, or several of one name.
type Follower struct {
	ID        string `json:"id"`
	Era       string `json:"era"`
	Name      string `json:"name,omitempty"`
	Principal string `json:"principal,omitempty"`
	Session   string `json:"session,omitempty"`
	Count     int    `json:"count"` // of subscriptions to the topics listed
}

// A Topic is a list or a resource of a server that somebody follows. Profiles of clients
// have topics of their own, which are one here.
type Topic struct {
	ID        string `json:"id"`
	Server    string `json:"server"`
	Kind      string `json:"kind"` // as in notifications of listen streams
	URI       string `json:"uri,omitempty"`
	Followers int    `json:"followers"`
}

// A Following is a client that follows topics without subscriptions of the gateway: its
// session is relayed.
type Following struct {
	Topics []TopicKey
	By     func() FollowerKey // called only for a client that is told of
}

// An Edge says that Count of a Follower's subscribers follow a Topic. Both are given by
// their place in the lists.
type Edge struct {
	Follower int `json:"follower"`
	Topic    int `json:"topic"`
	Count    int `json:"count"`
}
