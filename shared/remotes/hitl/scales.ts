/** How much a skill can do without asking, the least first (docs/hitl.md). */
export const HITL_MODES = ["autonomous", "notification", "veto", "gated", "compound"] as const;
export type HitlMode = (typeof HITL_MODES)[number];

/** How far what a skill does reaches, the least first. */
export const BLAST_RADII = ["self", "project", "repo", "fleet", "public"] as const;
export type BlastRadius = (typeof BLAST_RADII)[number];
