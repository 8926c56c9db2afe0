//! A server against a simple model in host memory, and servers with known faults.

use std::collections::{BTreeMap, VecDeque};

use model::contents::View;
use model::params::Params as _;
use model::units::Word;
use model::workload::Ptr;

use super::*;

const HEAP: std::ops::Range<u64> = 4096..32 << 20;

/// A filled server, or several, and its memory.
fn filled(text: &str, cores: u8) -> (Memcached, View) {
    let mut params = MemcachedParams::default();
    for pair in text.split_whitespace() {
        let (name, value) = pair.split_once('=').expect("name=value");
        params.set(name, value.parse().expect("a number"));
    }
    let site = Site { cores, seed: 5, heap: HEAP, items: 300, script: None, checker: None };
    let mut workload = Memcached::new(&params, &site).expect("a workload");
    let mut view = View::new(HEAP.end, 1 << 20).expect("room");
    workload.populate(&mut Pm::plain(&mut view, CoreId(0))).expect("room");
    (workload, view)
}

/// The contents of a server: keys and versions in order of use, a list for each class.
#[derive(Clone, Debug, Default)]
struct Cache {
    lists: BTreeMap<usize, VecDeque<(u64, u64)>>,
    used: BTreeMap<u64, u64>,
}

impl Cache {
    fn version(&self, number: u64) -> Option<u64> {
        let mut items = self.lists.values().flatten();
        items.find(|item| item.0 == number).map(|item| item.1)
    }

    fn remove(&mut self, number: u64) {
        self.lists.values_mut().for_each(|list| list.retain(|item| item.0 != number));
    }

    /// A SET; `evicts` says whether the class is full.
    fn set(&mut self, class: usize, set: Set, evicts: bool) {
        let list = self.lists.entry(class).or_default();
        if evicts {
            list.pop_back();
        }
        self.remove(set.number);
        self.lists.entry(class).or_default().push_front((set.number, set.stamp));
        self.used.insert(set.number, set.now);
    }

    fn get(&mut self, number: u64, now: u64, interval: u64) -> Option<u64> {
        let version = self.version(number)?;
        if now - self.used[&number] > interval {
            for list in self.lists.values_mut() {
                if let Some(place) = list.iter().position(|item| item.0 == number) {
                    let item = list.remove(place).expect("an item");
                    list.push_front(item);
                }
            }
            self.used.insert(number, now);
        }
        Some(version)
    }
}

/// Whether no chunk of a class is free and no page can be carved for it.
fn is_full(server: &Server, view: &View, class: usize) -> bool {
    let word = |address: u64| view.pm.word(Word::of(address));
    let field = |field| word(server.class_field(class, field));
    let pages = word(server.field(server::PAGES));
    let (free, rest) = (field(server::class::FREE), field(server::class::REST));
    let may_carve = pages < server.shape().pages_max || field(server::class::PAGES) == 0;
    free == 0 && rest == 0 && !may_carve
}

#[test]
fn a_server_is_a_cache() {
    for text in [
        "",
        "items=40 memory_percent=60 overwrite_percent=50 set_percent=60 update_interval=5",
        "items=100 sizes=1 memory_percent=80 page=4096 update_interval=3 overwrite_percent=30",
        "items=100 sizes=1 value=8 carve=1 page=4096 buckets=2 overwrite_percent=90",
        "items=200 buckets=1 growth=1 key=40",
        "items=200 buckets=8 memory_percent=1000",
        "items=200 buckets=8 growth=2 set_percent=30",
    ] {
        let (workload, mut view) = filled(text, 1);
        let mut client = workload.client(CoreId(0));
        let server = workload.servers[0].clone();
        let shape = server.shape().clone();
        let (mut cache, mut evictions) = (Cache::default(), 0);
        // The model begins with every key's version, newest first, as filling chose the classes.
        for number in 0..300 {
            let mut pm = Pm::plain(&mut view, CoreId(0));
            let Some(version) = server.get(&mut pm, number, 0).expect("an item") else { continue };
            let (_, found) = server.find(&mut pm, number);
            let (_, class) = shape.kind_of(item::sizes_of(&mut pm, found)).expect("a kind");
            cache.lists.entry(class).or_default().push_front((number, version));
            cache.used.insert(number, 0);
        }
        for round in 0..2_000 {
            let command = client.draw();
            let now = client.commands;
            match command {
                Command::Set(set) => {
                    let class = shape.sizes[set.size].1;
                    let evicts = is_full(&server, &view, class);
                    evictions += u32::from(evicts);
                    let mut pm = Pm::plain(&mut view, CoreId(0));
                    client.serve(&mut pm, command).expect("a command");
                    cache.set(class, set, evicts);
                }
                Command::Get(number) => {
                    let mut pm = Pm::plain(&mut view, CoreId(0));
                    let found = server.get(&mut pm, number, now).expect("an item");
                    assert_eq!(found, cache.get(number, now, shape.update_interval), "{text}");
                }
            }
            if round % 40 == 0 {
                assert_eq!(workload.check(&Image::over(&view.pm)), Ok(()), "{text}");
                let mut pm = Pm::plain(&mut view, CoreId(0));
                for number in 0..client.oldest + client.window {
                    let (_, found) = server.find(&mut pm, number);
                    assert_eq!(!found.is_null(), cache.version(number).is_some(), "{number}");
                }
            }
        }
        if !text.contains("memory_percent=1000") {
            assert!(evictions > 100, "{text}: {evictions} evictions");
        }
    }
}

/// Does a command by its calls.
fn by_calls(client: &mut Client, pm: &mut Pm<'_>, command: Command) -> Step {
    client.begin(pm, command)?;
    while client.next.is_some() {
        client.call(pm)?;
    }
    Ok(())
}

/// What a command leaves does not depend on how many transactions it is.
#[test]
fn calls_are_a_command() {
    for text in [
        "",
        "items=40 memory_percent=60 overwrite_percent=50 set_percent=60 update_interval=5",
        "items=100 sizes=1 memory_percent=80 page=4096 update_interval=3 overwrite_percent=30",
        "items=200 buckets=1 growth=1 key=40",
    ] {
        let [mut one, mut other] = [0, 1].map(|transactions| {
            let text = format!("{text} transactions={transactions}");
            let (workload, view) = filled(&text, 1);
            let client = workload.client(CoreId(0));
            (workload, view, client)
        });
        for round in 0..1_000 {
            let command = one.2.draw();
            other.2.commands = one.2.commands;
            one.2.serve(&mut Pm::plain(&mut one.1, CoreId(0)), command).expect("a command");
            let mut pm = Pm::plain(&mut other.1, CoreId(0));
            by_calls(&mut other.2, &mut pm, command).expect("a command");
            if round % 40 == 0 {
                assert_eq!(other.0.check(&Image::over(&other.1.pm)), Ok(()), "{text}");
                let bytes = |view: &View| view.pm.bytes(HEAP.start, 8 << 20).to_vec();
                assert!(bytes(&one.1) == bytes(&other.1), "{text}, round {round}");
            }
        }
    }
}

/// Clients that take turns between calls see items that others hold; no item is lost, and a chunk
/// that a power failure leaves without any owner is no fault.
#[test]
fn calls_of_clients_may_alternate() {
    let text = "items=60 set_percent=60 overwrite_percent=60 memory_percent=70 \
                update_interval=9 transactions=1";
    let (workload, mut view) = filled(text, 3);
    let mut clients: Vec<Client> = (0..3).map(|core| workload.client(CoreId(core))).collect();
    let (mut random, mut held) = (Random::new(4, CoreId(0), "turns"), 0);
    for round in 0..6_000 {
        let core = random.below(3);
        let mut pm = Pm::plain(&mut view, CoreId(core as u8));
        clients[core as usize].transaction(&mut pm).expect("a call");
        if round % 50 == 0 {
            assert_eq!(workload.check(&Image::over(&view.pm)), Ok(()), "round {round}");
            let holds = |client: &&Client| matches!(client.next, Some(Call::Store(..)));
            held += clients.iter().filter(holds).count();
        }
    }
    assert!(held > 20, "{held} items that nothing leads to");
}

/// Clients drop the references that were held when the power failed, between whatever calls.
#[test]
fn what_clients_held_when_the_power_failed_they_let_go() {
    let text = "items=60 set_percent=60 overwrite_percent=60 memory_percent=70 \
                update_interval=9 transactions=1";
    let (mut workload, mut view) = filled(text, 3);
    let (mut random, mut held) = (Random::new(4, CoreId(0), "turns"), 0);
    for life in 0..200 {
        let mut clients: Vec<Client> = (0..3).map(|core| workload.client(CoreId(core))).collect();
        for _ in 0..random.below(40) {
            let core = random.below(3);
            let mut pm = Pm::plain(&mut view, CoreId(core as u8));
            clients[core as usize].transaction(&mut pm).expect("a call");
        }
        // Clients that have begun hold at most one item, and the others those left to them.
        let image = Image::over(&view.pm);
        let found = workload.look(&image).expect("it is sound").held.len();
        let has = |client: &Client| usize::from(client.next.is_some()) + client.held.len();
        assert_eq!(found, clients.iter().map(has).sum::<usize>(), "life {life}");
        held += found;
        workload.reopen(&image, life).expect("it is sound");
    }
    assert!(held > 100, "{held} references");
}

/// With three clients and room for two items, a client that finds no unreferenced item stores
/// nothing.
#[test]
fn a_set_without_room_ends() {
    let text = "items=2 set_percent=70 overwrite_percent=60 memory_percent=10 page=256 \
                transactions=1";
    let (workload, mut view) = filled(text, 3);
    let mut clients: Vec<Client> = (0..3).map(|core| workload.client(CoreId(core))).collect();
    let (mut random, mut refused) = (Random::new(4, CoreId(0), "turns"), 0);
    for round in 0..3_000 {
        let client = &mut clients[random.below(3) as usize];
        let began = client.next.is_none().then(|| client.stamps.clone());
        client.transaction(&mut Pm::plain(&mut view, CoreId(0))).expect("a call");
        let was_set =
            began.is_some_and(|mut before| before.issue() != client.stamps.clone().issue());
        refused += u32::from(was_set && client.next.is_none());
        if round % 50 == 0 {
            assert_eq!(workload.check(&Image::over(&view.pm)), Ok(()), "round {round}");
        }
    }
    assert!(refused > 20, "{refused} of 3,000");
}

/// MICRO'19 Table 3 has three lines and two pages: those of the calls, and not of a command.
#[test]
fn a_call_writes_three_lines_in_two_pages() {
    let text = "transactions=1 memory_percent=1000 growth=2";
    let (workload, mut view) = filled(text, 1);
    let mut client = workload.client(CoreId(0));
    let (mut lines, mut pages, calls) = (0, 0, 3_000);
    for _ in 0..calls {
        if let Some(Call::Store(set, new)) = client.next {
            // The value belongs to no transaction, so it is stored again.
            let kind = &workload.shape.sizes[set.size].0;
            kind.store_value(&mut Pm::plain(&mut view, CoreId(0)), new, set.number, set.stamp);
        }
        let old = view.pm.bytes(0, HEAP.end / 4).to_vec();
        client.transaction(&mut Pm::plain(&mut view, CoreId(0))).expect("a call");
        let new = view.pm.bytes(0, HEAP.end / 4);
        let changed = |size: usize| {
            let units = old.chunks(size).zip(new.chunks(size));
            units.filter(|(old, new)| old != new).count()
        };
        (lines, pages) = (lines + changed(64), pages + changed(4096));
    }
    let mean = |count: usize| count as f64 / f64::from(calls);
    assert!((2.5..3.5).contains(&mean(lines)), "{} lines", mean(lines));
    assert!((1.5..2.5).contains(&mean(pages)), "{} pages", mean(pages));
}

/// 300 items in one bucket: the table doubles as long as there are three items for two buckets.
#[test]
fn a_table_doubles_with_its_items() {
    for (growth, buckets) in [(0, 256), (1, 256), (2, 1)] {
        let text = format!("items=300 buckets=1 memory_percent=100 growth={growth}");
        let (workload, mut view) = filled(&text, 1);
        let mut client = workload.client(CoreId(0));
        for _ in 0..2_000 {
            client.transaction(&mut Pm::plain(&mut view, CoreId(0))).expect("a transaction");
        }
        let root = workload.servers[0].field(server::BUCKET_COUNT);
        assert_eq!(view.pm.word(Word::of(root)), buckets, "{text}");
    }
}

/// Filling moves a bucket with every item, as commands do, and the remaining buckets at the end.
/// So the first command finds a table that is large enough, and moves nothing.
#[test]
fn a_filled_table_does_not_grow() {
    for (text, buckets) in [
        ("items=300 buckets=1", 256),
        ("items=300 buckets=64", 256),
        ("items=300 buckets=64 transactions=1", 256),
        ("items=900 buckets=64 shared=0", 256),
        ("items=300 buckets=64 growth=1", 256),
        ("items=300 buckets=64 growth=2", 64),
    ] {
        let (workload, view) = filled(text, 3);
        for server in &workload.servers {
            let field = |field| view.pm.word(Word::of(server.field(field)));
            assert_eq!(field(server::OLD_BUCKETS), 0, "{text}");
            assert_eq!(field(server::BUCKET_COUNT), buckets, "{text}");
        }
    }
}

/// Old contents at the place of the larger table are cleared with it.
#[test]
fn a_table_that_doubles_is_empty_whatever_was_there() {
    let text = "items=300 buckets=256 memory_percent=1000 set_percent=100";
    let (workload, mut view) = filled(text, 1);
    let used = workload.supplies[0].heap.clone().alloc(1 << 12).expect("room").address;
    for word in (used..used + (1 << 20)).step_by(8).map(Word::of) {
        view.pm.set_word(word, 0x0123_4567_89ab_cdef);
    }
    let mut client = workload.client(CoreId(0));
    for _ in 0..400 {
        client.transaction(&mut Pm::plain(&mut view, CoreId(0))).expect("a transaction");
        workload.check(&Image::over(&view.pm)).expect("a sound table");
    }
    let count = workload.servers[0].field(server::BUCKET_COUNT);
    assert_eq!(view.pm.word(Word::of(count)), 512);
}

#[test]
fn items_that_fit_no_page_are_refused() {
    let site = Site { cores: 1, seed: 5, heap: HEAP, items: 300, script: None, checker: None };
    for (page, value, item, chunk) in [(512, 512, 595, 512), (149, 64, 146, 144)] {
        let params = MemcachedParams { page, value, ..MemcachedParams::default() };
        let Err(Stop::Input(text)) = Memcached::new(&params, &site) else { panic!("no error") };
        let told = format!(
            "an item of {item} bytes does not fit a `page` of {page} bytes, whose largest chunk \
             has {chunk}, a multiple of 8"
        );
        assert_eq!(text, told);
    }
}

#[test]
fn faults_are_told() {
    let (workload, mut view) = filled("items=60 sizes=1 page=4096", 1);
    let mut client = workload.client(CoreId(0));
    for _ in 0..200 {
        client.transaction(&mut Pm::plain(&mut view, CoreId(0))).expect("a transaction");
    }
    let server = &workload.servers[0];
    let mut pm = Pm::plain(&mut view, CoreId(0));
    let (place, item) = server.find(&mut pm, client.oldest + client.window - 1);
    assert!(!item.is_null());
    let sizes = item::sizes_of(&mut pm, item);
    let (_, class) = server.shape().kind_of(sizes).expect("a kind");
    let list = server.class_field(class, server::class::FIRST);
    let first = pm.load_ptr(Ptr::to(list));
    let second = pm.load(first.plus(item::NEXT));
    for (address, value, told) in [
        (server.field(server::ITEMS), 1, "and 1 counted"),
        (server.field(server::PAGES), 1, "says"),
        (server.field(server::PAGES), 1 << 40, "pages, and"),
        (server.field(server::BUCKETS), 8, "no place in"),
        (server.field(server::BUCKET_COUNT), 3, "no power of two"),
        (server.field(server::OLD_BUCKETS), 3, "no place in"),
        (server.page_entry(0), 4096 | 1, "which holds no items"),
        (list, second, "it says"),
        (list, 0, "its list has 0 items"),
        (second + item::NEXT, first.address, "was Listed"),
        (place.address, 0, "chained"),
        (item.address + item::CHAIN, item.address, "is Chained and was Chained"),
        (item.address + 48, 7, "is torn at byte"),
        (item.address + 56, 7, "is torn at byte"),
        (item.address + 32, 7, "is none of class"),
        (item.address + 40, 7, "is none of class"),
        (server.class_field(0, server::class::ITEMS), 1, "it says 1"),
        (server.class_field(class, server::class::FREE), item.address, "is not marked"),
        (server.class_field(0, server::class::FREE_COUNT), 9, "it says 9"),
        (server.class_field(class, server::class::REST), item.address, "chunks are left"),
        (server.class_field(0, server::class::PAGES), 0, "says 0"),
        (item.address + 32, 1 << 32, "is none of class"),
        (item.address + 32, sizes + (1 << 32), "1 references to items, and there are 0"),
        (second + item::TIME, 1 << 20, "was used at 1048576, and is behind one used before"),
    ] {
        let mut image = Image::over(&view.pm);
        image.set_word(Word::of(address), value).expect("power");
        let error = workload.check(&image).expect_err(told);
        assert!(error.contains(told), "`{error}` does not say `{told}`");
    }
}
