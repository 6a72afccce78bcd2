// Every kind of event: an EventSource only hears those that it names.
export const kinds = [
  "baseline.timed", "candidate.built", "candidate.confirming", "candidate.created", "candidate.duplicate",
  "champion.promoted",
  "proposer.stopped",
  "evaluation.settled", "problem.admitted", "problem.refused", "proposal.opened", "proposal.settled", "run.created",
  "run.ended", "run.extended", "run.learned", "run.progress", "run.status", "search.decided",
];
