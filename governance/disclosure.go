package governance

// Disclosure is the text by which a door tells people that they deal with an AI system (EU AI Act,
// Article 50). A deployer may add to it.
const Disclosure = "Answers here are produced by an AI system from the documents it may search. Each claim is checked " +
	"against the passage it cites, but answers can be incomplete or wrong: read the sources before you rely on one. " +
	"The system takes no action. Every step is recorded, and some answers wait for a person's review."
