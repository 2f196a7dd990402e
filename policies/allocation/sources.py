"""The papers, once."""

ZHANG = "Y. Zhang: Intelligent middleware for HPC systems, thesis, Boston University 2021, 3.2.2"
BASELINE = "Zhang 2021, 3.3.4"
JAIN = f"N. Jain et al.: Maximizing throughput on a dragonfly network, SC'14; {BASELINE}"
SLURM = f"Slurm, plugin select/linear; {BASELINE}"
JOKANOVIC = f"A. Jokanovic et al.: Quiet neighborhoods, IPDPS 2015; {BASELINE}"
NEDD = "Zhang 2021, 3.7"
RIVALS = "Zhang 2021, 3.8.1"
