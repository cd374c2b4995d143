mod drift;
mod figures;
mod simulated;
