"""gpuverdict: which GPU serves this model better, in which phase, by how much, and is it real?"""
