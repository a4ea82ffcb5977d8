# Asks walltimed for Open OnDemand: a suggested time for a form, and the starts of one's own jobs.
#
# Copy to /etc/ood/config/lib/walltimed.rb. Open OnDemand runs it as the user who looks, so it reads
# that user's own token of scope self (`walltimed token issue NAME --scope self --user NAME`). It uses
# Ruby's standard library only and fails open: without an answer in time it says nothing, and forms
# keep their own values.
require "json"
require "net/http"
require "time"
require "uri"

module Walltimed
  URL = ENV.fetch("WALLTIMED_URL", "http://127.0.0.1:8580")
  TOKEN_FILE = ENV.fetch("WALLTIMED_TOKEN_FILE", File.expand_path("~/.config/walltimed/token"))
  SECONDS = 1.0
  LARGEST_ANSWER = 1 << 20

  class << self
    # Whole hours that would do for jobs like this one of the user; nil if nobody can tell.
    def suggested_hours(requested_hours:, application: nil, queue: nil, processors: 1,
                        cluster: "default")
      submission = { requested_walltime: requested_hours * 3600, requested_processors: processors,
                     application: application, queue: queue }.compact
      answer = post("/v1/clusters/#{escaped(cluster)}/what-if", submission: submission)
      seconds = answer && answer["suggested_walltime"]
      seconds.is_a?(Numeric) && seconds.positive? ? (seconds / 3600.0).ceil : nil
    end

    # The user's jobs that run or wait, with forecast start and end; nil if nobody can tell.
    def jobs(cluster: "default", limit: 10)
      answer = get("/v1/clusters/#{escaped(cluster)}/snapshot?limit=#{Integer(limit)}")
      found = answer && answer["jobs"]
      found.is_a?(Array) ? found.select { |job| job.is_a?(Hash) } : nil
    end

    # A time as people read it; a dash for one that is not known.
    def moment(seconds)
      seconds.is_a?(Numeric) ? Time.at(seconds).strftime("%a %H:%M") : "–"
    end

    private

    def get(path)
      ask(Net::HTTP::Get.new(path))
    end

    def post(path, body)
      request = Net::HTTP::Post.new(path, "Content-Type" => "application/json")
      request.body = JSON.generate(body)
      ask(request)
    end

    def ask(request)
      uri = URI(URL)
      token = File.readable?(TOKEN_FILE) ? File.read(TOKEN_FILE).strip : nil
      request["Authorization"] = "Bearer #{token}" if token && !token.empty?
      options = { use_ssl: uri.scheme == "https", open_timeout: SECONDS, read_timeout: SECONDS }
      Net::HTTP.start(uri.host, uri.port, nil, **options) do |connection|
        connection.max_retries = 0
        answer_in(connection, request)
      end
    rescue StandardError
      nil # a form must open, and the dashboard too
    end

    def answer_in(connection, request)
      connection.request(request) do |response|
        return nil unless response.is_a?(Net::HTTPSuccess)

        text = +""
        response.read_body do |part|
          text << part
          return nil if text.bytesize > LARGEST_ANSWER
        end
        return JSON.parse(text)
      end
    end

    def escaped(name)
      URI.encode_www_form_component(name).gsub("+", "%20")
    end
  end
end
