// Threads as C++ has them, which wait for each other and store to a pool.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

struct Pool {
    std::uint64_t total, shared, answer;
    std::uint64_t each[4];
};

static Pool *pool;
static std::mutex mutex;
static std::shared_mutex readers;
static std::condition_variable begin;
static bool has_begun;

static void work(int own)
{
    {
        std::unique_lock<std::mutex> held(mutex);
        if (!begin.wait_for(held, std::chrono::seconds(60), [] { return has_begun; }))
            std::abort();
    }
    for (int round = 0; round < 10; round++) {
        std::lock_guard<std::mutex> held(mutex);
        pool->total++;
        pool->each[own]++;
        std::this_thread::yield();
    }
    std::unique_lock<std::shared_mutex> held(readers);
    pool->shared++;
}

int main()
{
    int file = open("pool", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(file, 4096) != 0)
        return 1;
    pool = static_cast<Pool *>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    std::vector<std::thread> threads;
    for (int own = 0; own < 4; own++)
        threads.emplace_back(work, own);
    {
        std::lock_guard<std::mutex> held(mutex);
        has_begun = true;
    }
    begin.notify_all();
    auto answer = std::async(std::launch::async, [] {
        std::lock_guard<std::mutex> held(mutex);
        pool->total += 100;
        return 5;
    });
    pool->answer = answer.get();
    for (auto &thread : threads)
        thread.join();
    return pool->total == 140 && pool->shared == 4 && pool->answer == 5 ? 0 : 2;
}
