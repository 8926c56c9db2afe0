mod common;
#[test]
fn probe() {
    for line in
        std::fs::read_to_string("/tmp/h5lines").unwrap().lines().filter(|l| !l.trim().is_empty())
    {
        let (verb, rest) = line.trim().split_once(' ').unwrap();
        let req = common::request(rest).to_string();
        let r = std::panic::catch_unwind(|| match verb {
            "run" => lab::run(&req, &Default::default()),
            _ => lab::crash(&req, &Default::default()),
        });
        match r {
            Ok(Ok(a)) => {
                let v: serde_json::Value = serde_json::from_str(&a).unwrap();
                if verb == "run" {
                    println!("OK {line}: {} {}", v["cycles"], v["throughput_tx_per_s"]);
                } else {
                    println!(
                        "OK {line}: points {} passed {} viol {} {}s",
                        v["points"],
                        v["crash_points"],
                        v["violations"].as_array().unwrap().len(),
                        v["seconds"]
                    );
                    if std::env::var("FULL").is_ok() {
                        println!("{:#}", v["violations"][0]);
                    }
                }
            }
            Ok(Err(e)) => println!("ERR {line}: {e}"),
            Err(_) => println!("PANIC {line}"),
        }
    }
}
