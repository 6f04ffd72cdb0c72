package assay

// A Turn is one question of a conversation and what was answered.
type Turn struct {
	Question string `json:"question"` // as it was understood
	Answer   string `json:"answer"`

	// Asked is the question as it was asked, where it was understood as another one.
	Asked string `json:"asked,omitempty"`
}
