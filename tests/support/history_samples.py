"""A file of each format that holds runs, by the names of the table of readers."""

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
SWF = """\
; UnixStartTime: 1000000000
1 0 10 100 4 -1 -1 4 600 -1 1 3 1 7 1 1 -1 -1
2 50 0 60 1 -1 -1 1 300 -1 0 4 1 7 1 1 -1 -1
"""
CSV = """\
cluster,job_id,user,group,project,queue,application,requested_walltime,requested_processors,\
requested_memory,submit_time,start_time,end_time,runtime,status,\
interactive,work_dir,script_hash,submit_line,qos,nodes,gpus,gpu_type,array_size,constraint,\
dependency,submit_host,features
hill,7,ada,g,p,batch,"'=1+1, two",3600.0,4,1024.0,1000000000.0,1000000060.0,1000000660.0,500.0,\
completed,1,/home/ada/run7,00ff,sbatch case.sh 7,high,2,8,a100,4,ivy,afterok,login1,\
"{""rule"":""map"",""size"":2.5}"
"""
SAMPLES = {
    "swf": [SWF.encode()],
    "sacct": [
        (DATA / "slurm" / name).read_bytes()
        for name in ("sacct.txt", "xdmod.txt", "sacct_22.05.json", "sacct_26.05.json")
    ],
    "csv": [CSV.encode()],
    "pbs": [(DATA / "pbs" / "accounting.txt").read_bytes()],
}
