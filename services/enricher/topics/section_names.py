"""What sections of news are called, by topic, in about thirty languages.

Only names that tell the topic: `News`, `World`, `Panorama`, `Local`, `Opinion`, `Video` do not.
"""

from services.enricher.topics import taxonomy as t

SECTIONS = {
    t.SPORT: """
        sport, sports, football, soccer, basketball, tennis, golf, cricket, rugby, formula 1, formula one, f1, motorsport,
        nfl, nba, mlb, nhl, cycling, athletics, boxing, mma, ufc, olympics, premier league, champions league, world cup
        fussball, bundesliga, handball, radsport, leichtathletik, wintersport, skispringen, eishockey, olympia
        deportes, deporte, fútbol, baloncesto, tenis, ciclismo, laliga, mundial, automovilismo
        sports, foot, rugby, cyclisme, ligue 1, athlétisme, jeux olympiques, jo 2024
        calcio, serie a, ciclismo, motori sport, pallavolo
        esporte, esportes, desporto, futebol, basquete, brasileirão
        voetbal, wielrennen, schaatsen, sporten
        sporty, piłka nożna, piłka, siatkówka, skoki narciarskie, żużel
        спорт, футбол, хоккей, теннис, спорт новости, биатлон, баскетбол
        спорт, футбол, спорту
        futbol, basketbol, spor haberleri
        رياضة, الرياضة, كرة القدم, كرة قدم, رياضة عربية
        体育, 體育, 足球, 篮球, 籃球, 运动, 運動, nba篮球
        スポーツ, 野球, サッカー, 相撲, ゴルフ, テニス
        스포츠, 축구, 야구, 농구
        idrott, fotboll, ishockey, sporten, fodbold, håndbold, fotball, langrenn, urheilu, jalkapallo, jääkiekko
        fotbal, hokej, sportovní, šport, futbal, nogomet, košarka, kosarka, foci, labdarúgás
        αθλητικά, αθλητισμός, ποδόσφαιρο, μπάσκετ, αθλητικα, σπορ
        ספורט, כדורגל, כדורסל
        खेल, क्रिकेट, खेल समाचार, খেলা, খেলাধুলা, ক্রিকেট, விளையாட்டு
        olahraga, sepak bola, bola, bóng đá, thể thao, the thao, bong da, กีฬา, ฟุตบอล
        esports, michezo, ورزش, ورزشی, کھیل
    """,
    t.POLITICS: """
        politics, us politics, uk politics, elections, election, election 2024, election 2026, government, parliament,
        congress, white house, senate, diplomacy, brexit, foreign policy, westminster, domestic politics
        politik, innenpolitik, aussenpolitik, bundestag, bundestagswahl, wahlen, landespolitik, regierung
        política, politica, elecciones, gobierno, congreso, política nacional
        politique, élections, gouvernement, élysée, parlement, présidentielle
        politica, elezioni, governo, parlamento, politica interna
        eleições, governo, eleições 2026, poder
        politiek, verkiezingen, kabinet, tweede kamer, den haag
        polityka, wybory, sejm, rząd
        политика, выборы, власть, госдума, внутренняя политика, внешняя политика
        політика, вибори, влада
        siyaset, politika, seçim, meclis
        سياسة, السياسة, انتخابات, سیاست, سیاسی
        政治, 时政, 時政, 选举, 選舉, 政治新闻
        政治, 選挙, 国会
        정치, 국회, 선거, 대통령실
        inrikespolitik, politikk, valg, politiikka, vaalit
        volby, vláda, politické, izbori, politikai, választás, belpolitika, belföld politika, politică, politica, alegeri
        πολιτική, πολιτικα, εκλογές, κυβέρνηση, פוליטיקה, פוליטי מדיני, בחירות
        राजनीति, चुनाव, রাজনীতি, நிர்வாகம், politik nasional, pemilu, chính trị, chinh tri, การเมือง, siasa
    """,
    t.ECONOMY: """
        business, economy, economics, finance, markets, money, stocks, stock market, companies, personal finance, banking,
        investing, real estate, cryptocurrency, crypto, bitcoin, property, earnings, trade, energy markets, commodities,
        business and economy, business news, economic policy, retail, small business
        wirtschaft, finanzen, börse, geld, unternehmen, konjunktur, immobilien, märkte, wirtschaft und finanzen
        economía, economia, finanzas, negocios, empresas, mercados, bolsa, dinero, vivienda
        économie, economie, finance, finances, entreprises, bourse, argent, marchés, immobilier, éco, eco
        finanza, imprese, mercati, borsa, aziende, soldi, economia e finanza
        negócios, finanças, empresas, mercado, mercados, dinheiro, economia e negócios
        economie, financieel, beurs, bedrijven, geld, financiën
        gospodarka, biznes, finanse, ekonomia, pieniądze, giełda, firma
        экономика, бизнес, финансы, деньги, рынки, недвижимость, компании, биржа
        економіка, бізнес, фінанси, гроші
        ekonomi, finans, iş dünyası, borsa, para
        اقتصاد, الاقتصاد, أعمال, مال وأعمال, اقتصادی, أسواق
        财经, 財經, 经济, 經濟, 金融, 商业, 股市, 房产, 產經, 证券
        経済, ビジネス, 金融, マーケット, 経済・ビジネス
        경제, 금융, 증권, 부동산, 산업, 비즈니스
        näringsliv, ekonomi, privatekonomi, økonomi, erhverv, næringsliv, børs, talous, pörssi
        ekonomika, byznys, finance, firmy, gazdaság, pénzügy, üzlet, economie, afaceri, gospodarstvo, poslovanje, ekonomija
        οικονομία, οικονομια, επιχειρήσεις, αγορές, כלכלה, שוק ההון, עסקים
        बिजनेस, व्यापार, कारोबार, अर्थव्यवस्था, অর্থনীতি, বাণিজ্য, வணிகம்
        bisnis, keuangan, ekonomi bisnis, kinh tế, kinh doanh, tài chính, เศรษฐกิจ, ธุรกิจ, การเงิน, uchumi, biashara
    """,
    t.SCIENCE: """
        science, technology, tech, sci tech, science and technology, space, astronomy, physics, biology, chemistry, research,
        artificial intelligence, ai, machine learning, llm, programming, software, software development, open source,
        cybersecurity, gadgets, computing, internet, smartphones, robotics, science & environment tech, archaeology,
        mathematics, engineering, hardware, android, iphone, apple, google, microsoft, python, linux, security research
        wissenschaft, technik, netzwelt, digital, wissen, forschung, technologie, weltraum, künstliche intelligenz, ki
        ciencia, tecnología, tecnologia, espacio, inteligencia artificial, ciencia y tecnología, informática
        sciences, technologie, technologies, numérique, high tech, espace, pixels, intelligence artificielle, sciences et technologies
        scienza, tecnologia, scienze, spazio, innovazione, scienza e tecnologia, intelligenza artificiale
        ciência, tecnologia, ciência e tecnologia, espaço, inovação, inteligência artificial
        wetenschap, techniek, tech, ruimtevaart, technologie
        nauka, technologie, technologia, technika, kosmos, sztuczna inteligencja, nowe technologie
        наука, технологии, техника, наука и техника, космос, гаджеты, интернет, искусственный интеллект, hi tech
        наука, технології, космос, штучний інтелект
        bilim, teknoloji, bilim ve teknoloji, uzay, yapay zeka
        علوم, تكنولوجيا, علوم وتكنولوجيا, التكنولوجيا, علم وتكنولوجيا, تقنية, فضاء, فناوری, علمی
        科技, 科学, 科學, 技术, 技術, 数码, 互联网, 人工智能, 航天
        科学, テクノロジー, サイエンス, 宇宙, デジタル, 科学・技術
        과학, 기술, it과학, it·과학, 테크, 인공지능
        vetenskap, teknik, teknologi, videnskab, forskning, vitenskap, tiede, teknologia, tekniikka
        věda, technika, technologie, věda a technologie, veda, znanost, tehnologija, nauka, tudomány, tech tudomány, știință, tehnologie
        επιστήμη, τεχνολογία, επιστημη, τεχνολογια, מדע, טכנולוגיה, הייטק
        विज्ञान, टेक्नोलॉजी, टेक, तकनीक, প্রযুক্তি, বিজ্ঞান, বিজ্ঞান ও প্রযুক্তি, தொழில்நுட்பம், அறிவியல்
        teknologi, sains, tekno, công nghệ, khoa học, cong nghe, khoa hoc, เทคโนโลยี, วิทยาศาสตร์, ไอที, teknolojia
    """,
    t.HEALTH: """
        health, medicine, healthcare, covid 19, covid, coronavirus, mental health, public health, medical, nhs, diseases,
        vaccines, health and medicine, nutrition
        gesundheit, medizin, psychologie, gesundheitswesen, salud, sanidad, medicina, bienestar salud
        santé, sante, médecine, salute, sanità, medicina, saúde, saude, gezondheid, geneeskunde, zdrowie, medycyna
        здоровье, медицина, здоров'я, здоров я, sağlık, saglik, صحة, الصحة, طب, سلامت, صحت
        健康, 医疗, 醫療, 卫生, 医学, 健康・医療, 医療, 건강, 의료, 의료·건강, 헬스
        hälsa, sjukvård, sundhed, helse, terveys, zdraví, zdravie, zdravlje, zdravje, egészség, sănătate, sanatate
        υγεία, υγεια, בריאות, स्वास्थ्य, सेहत, হেলথ, স্বাস্থ্য, உடல்நலம், kesehatan, sức khỏe, suc khoe, y tế, สุขภาพ, afya
    """,
    t.ARTS: """
        culture, arts, art, entertainment, music, film, movies, tv, television, books, theatre, theater, celebrity, celebrities,
        media, showbiz, arts and culture, arts & entertainment, entertainment & arts, tv & radio, photography, literature,
        hollywood, streaming, k pop, dance, museums, arts and entertainment, radio, comics, anime, journalism, reviews film
        kultur, musik, kino, literatur, bücher, medien, kunst, theater, unterhaltung, stars, fernsehen, feuilleton, promis
        cultura, música, cine, televisión, libros, arte, espectáculos, entretenimiento, teatro, gente y tv, famosos
        culture, musique, cinéma, livres, médias, télévision, arts, théâtre, séries, spectacles
        cultura, spettacoli, spettacolo, musica, cinema, libri, televisione, arte, teatro
        cultura, entretenimento, música, cinema, televisão, livros, ilustrada, famosos, pop arte, novelas
        cultuur, muziek, boeken, film, media, kunst, entertainment
        kultura, muzyka, film, książki, rozrywka, teatr, seriale, gwiazdy
        культура, музыка, кино, литература, театр, шоу бизнес, искусство, сми, медиа, книги, шоубиз
        культура, музика, кіно, книги
        kültür, kültür sanat, sanat, müzik, sinema, magazin, kitap
        ثقافة, فن, فنون, الثقافة, ثقافة وفن, سينما, موسيقى, فرهنگ, هنر, ترفيه
        文化, 娱乐, 娛樂, 影视, 影視, 音乐, 電影, 明星, 艺术
        文化, エンタメ, 芸能, 音楽, 映画, 芸能・エンタメ, アート, カルチャー
        문화, 연예, 영화, 음악, 방송, 문화·연예
        kultur, nöje, kultur och nöje, film og tv, underholdning, kulttuuri, viihde, musiikki
        kultúra, kultura, kultúra szórakozás, filmy, hudba, cultură, monden, zabava, glazba, film tv
        πολιτισμός, πολιτισμος, σινεμά, μουσική, ψυχαγωγία, תרבות, תרבות ובידור, קולנוע
        मनोरंजन, बॉलीवुड, बॉलिवुड, বিনোদন, সংস্কৃতি, சினிமா, பொழுதுபோக்கு
        hiburan, seleb, musik, film, giải trí, giai tri, văn hóa, บันเทิง, วัฒนธรรม, burudani
    """,
    t.CRIME: """
        crime, law, justice, courts, court, police, crime and justice, law and crime, crime & courts, legal, true crime,
        supreme court, trials
        kriminalität, justiz, recht, blaulicht, polizei, sucesos, tribunales, justicia, policiales, seguridad y justicia, judicial
        justice, faits divers, police justice, police, cronaca nera, giustizia, cronaca giudiziaria
        polícia, segurança pública, justiça, policial, casos de polícia, misdaad, rechtspraak
        prawo, kryminalne, przestępczość, sądy, криминал, происшествия криминал, суд, закон и право, преступность
        кримінал, суди, adliye, asayiş, suç, جرائم, حوادث وجرائم, 法治, 犯罪, 事件, 裁判, 事件・裁判, 검찰·법원, 법원·검찰, 사건·범죄
        brott, brott och straff, krimi, kriminalitet, rikos, rikokset, krimi, kriminalita, crna kronika, bűnügy, justiție,
        δικαιοσύνη, אסטרטגיה משפט, משפט, פלילים, क्राइम, अपराध, অপরাধ, kriminal, hukum, hukum & kriminal, pháp luật, phap luat, อาชญากรรม
    """,
    t.DISASTER: """
        disasters, natural disasters, disaster, accidents, earthquake, earthquakes, floods, wildfires, emergencies, tsunami
        katastrophen, unfälle, unglücke, erdbeben, hochwasser, desastres, terremoto, terremotos, inundaciones, accidentes,
        catastrophes, séisme, inondations, accident, terremoto, incidenti, desastres naturais, acidentes, rampen, ongelukken
        katastrofy, wypadki, катастрофы, дтп, землетрясение, чп, катастрофи, deprem, kazalar, كوارث, زلزال, 灾害, 災害, 地震,
        地震・災害, 재난, 지진, 사고, olyckor, ulykker, onnettomuudet, nehody, katastrofe, nesreće, baleset, accidente,
        bencana, gempa, thiên tai, động đất, ภัยพิบัติ, भूकंप, भूकंप समाचार, दुर्घटना, σεισμός
    """,
    t.CONFLICT: """
        war, conflict, conflicts, ukraine war, russia ukraine war, war in ukraine, gaza war, israel hamas war, israel gaza war,
        terrorism, military, defence, defense, army, war and conflict, middle east crisis, armed conflict
        krieg, ukraine krieg, krieg in der ukraine, nahostkonflikt, terrorismus, bundeswehr, krieg gegen die ukraine
        guerra, guerra en ucrania, conflictos, terrorismo, defensa, guerra de ucrania, guerra rusia ucrania
        guerre, guerre en ukraine, conflit, terrorisme, défense, guerra in ucraina, guerra ucraina, conflitti
        guerra na ucrânia, oorlog, oorlog in oekraïne, oorlog in gaza, wojna, wojna w ukrainie, wojsko, wojna na ukrainie
        война, война в украине, армия, сво, терроризм, спецоперация, війна, війна в україні, savaş, terör, حرب, الحرب, الحرب على غزة
        军事, 軍事, 战争, 戰爭, 俄乌战争, 戦争, ウクライナ侵攻, 국방, 전쟁, krig, kriget i ukraina, krigen i ukraine,
        ukrajina válka, válka na ukrajině, vojna, rat u ukrajini, háború, orosz ukrán háború, război, război în ucraina,
        πόλεμος, πόλεμος στην ουκρανία, מלחמה, צבא וביטחון, युद्ध, যুদ্ধ, perang, chiến tranh, quân sự, สงคราม
    """,
    t.EDUCATION: """
        education, schools, school, universities, higher education, university, students, college, teaching
        bildung, schule, hochschule, studium, karriere & bildung, educación, educacion, universidad, escuela,
        éducation, education, école, université, enseignement supérieur, istruzione, scuola, università, educação, educacao, vestibular, enem
        onderwijs, edukacja, szkoła, oświata, образование, школа, освіта, eğitim, egitim, تعليم, التعليم, آموزش, تعلیم
        教育, 高考, 校园, 学校, 교육, 대학, 입시, utbildning, skola, uddannelse, utdanning, koulutus, školství, školstvo, obrazovanje,
        oktatás, educație, educatie, παιδεία, εκπαίδευση, חינוך, शिक्षा, एजुकेशन, শিক্ষা, கல்வி, pendidikan, edukasi, giáo dục, giao duc, การศึกษา, elimu
    """,
    t.ENVIRONMENT: """
        environment, climate, climate change, nature, wildlife, green, sustainability, conservation, climate crisis, pollution,
        biodiversity, global warming, animals and nature, energy & environment
        umwelt, klima, natur, klimawandel, nachhaltigkeit, klimakrise, medio ambiente, clima y medio ambiente, cambio climático,
        naturaleza, environnement, planète, climat, nature, écologie, ambiente, clima e ambiente, natura, meio ambiente, ambiente e clima,
        milieu, klimaat, natuur, duurzaamheid, środowisko, ekologia, klimat, przyroda, экология, климат, природа, окружающая среда,
        екологія, клімат, довкілля, çevre, iklim, بيئة, البيئة, مناخ, محیط زیست, 环境, 環境, 环保, 氣候, 气候变化, 環境・気候, 환경, 기후, 기후·환경,
        miljö, klimat, miljø, klima og miljø, luonto, ympäristö, ilmasto, životní prostředí, životné prostredie, okoliš, okolje, környezet, mediu,
        περιβάλλον, κλίμα, סביבה, אקלים, पर्यावरण, পরিবেশ, சுற்றுச்சூழல், lingkungan, môi trường, moi truong, สิ่งแวดล้อม, mazingira
    """,
    t.LIFESTYLE: """
        lifestyle, life and style, life & style, travel, food, fashion, style, recipes, food and drink, food & drink, garden,
        gardening, cooking, beauty, shopping, cars, wellness, restaurants, tourism, home & garden, horoscope, gaming, games, hobbies, parenting tips
        reise, reisen, essen, mode, lifestyle, auto, genuss, kochen, garten, wohnen, stil, rezepte, essen und trinken, spiele
        estilo, estilo de vida, viajes, gastronomía, moda, cocina, viajar, recetas, turismo, belleza, horóscopo
        voyage, voyages, cuisine, mode, gastronomie, art de vivre, style, jardin, tourisme, viaggi, cucina, moda, stile, ricette, turismo, motori
        viagem, turismo, gastronomia, moda, receitas, comida, reizen, koken, eten, wonen, tuin, podróże, kuchnia, moda, ogród, styl życia, turystyka
        путешествия, туризм, мода, еда, стиль, рецепты, дом и сад, стиль жизни, подорожі, мода, їжа, yaşam, seyahat, yemek, moda, astroloji,
        أسلوب حياة, منوعات وموضة, سفر, سياحة, موضة, 旅游, 旅遊, 时尚, 時尚, 美食, 生活时尚, ライフスタイル, グルメ, 旅行, ファッション, 여행, 패션, 라이프스타일, 맛집,
        resor, mat och dryck, mode, rejser, livsstil, reise, matkailu, ruoka, muoti, cestování, jídlo, móda, bydlení, putovanja, moda, hrana, utazás, gasztro, életmód,
        călătorii, retete, ταξίδια, μόδα, γαστρονομία, אוכל, תיירות, אופנה, लाइफस्टाइल, जीवनशैली, লাইফস্টাইল, gaya hidup, travel, kuliner, du lịch, đời sống ẩm thực, ท่องเที่ยว, ไลฟ์สไตล์
    """,
    t.RELIGION: """
        religion, faith, church, vatican, islam, christianity, pope, catholic church, belief, judaism, buddhism
        religion, kirche, glaube, religionen, papst, religión, iglesia, vaticano, iglesia católica, religions, église, catholicisme, religione, chiesa, papa, vaticano
        religião, igreja, religie, geloof, kerk, religia, kościół, wiara, религия, церковь, православие, релігія, церква, din, diyanet, دين, إسلام, إسلاميات, مذهب
        宗教, 佛教, 종교, kyrka, tro og religion, uskonto, kirkko, náboženství, náboženstvo, vallás, religie, vera, θρησκεία, εκκλησία, דת, יהדות, धर्म, धर्म कर्म, আধ্যাত্মিক, ধর্ম, ஆன்மீகம், agama, tôn giáo, ศาสนา
    """,
    t.WEATHER: """
        weather, forecast, weather forecast, storms, wetter, unwetter, wetterbericht, el tiempo, tiempo y clima, pronóstico del tiempo, météo, meteo, météorologie,
        previsioni meteo, previsão do tempo, meteorologia, weer, weerbericht, pogoda, погода, погода новости, hava durumu, طقس, الطقس, 天气, 天氣, 氣象, 気象, 天気, お天気, 날씨,
        väder, vejret, vejr, været, vær, sää, počasí, počasie, vrijeme i vremenska prognoza, vreme, időjárás, meteorologie, vremea, καιρός, καιρος, מזג אוויר, मौसम, আবহাওয়া, வானிலை, cuaca, thời tiết, พยากรณ์อากาศ
    """,
    t.LABOUR: """
        labor, labour, jobs, employment, workers, unions, strikes, trade unions, workplace, work and careers
        arbeitsmarkt, arbeit, streik, gewerkschaften, empleo, trabajo, sindicatos, huelga, laboral, emploi, travail, social et emploi, syndicats, grève,
        lavoro, sindacati, sciopero, emprego, empregos, trabalho, concursos e emprego, arbeidsmarkt, vakbonden, praca, rynek pracy, труд, работа, рынок труда, professioni,
        ринок праці, çalışma hayatı, istihdam, memur, عمل ووظائف, وظائف, 劳动, 就业, 労働, 雇用, 노동, 고용, 노동·고용, 취업, arbetsmarknad, arbejdsmarked, arbeidsliv, työelämä, työ, zaměstnání, munka, locuri de muncă, εργασία, ergasia, רווחה ועבודה, नौकरी, জব, চাকরি, ketenagakerjaan, việc làm, แรงงาน
    """,
    t.SOCIETY: """
        society, family, immigration, migration, human rights, gender, women, lgbtq, lgbt, refugees, equality, inequality, demographics, community life, relationships, race and ethnicity
        gesellschaft, familie, migration, frauen, partnerschaft, sociedad, migración, inmigración, familia, igualdad, mujeres, société, immigration, famille, migrants, droits humains, società, migranti, famiglia, immigrazione,
        sociedade, imigração, direitos humanos, maatschappij, samenleving, migratie, gezin, społeczeństwo, rodzina, migracja, общество права человека, миграция, семья, права человека, суспільство, toplum, göç, aile, kadın, هجرة, حقوق الإنسان, المرأة, 移民, 人権, 移民難民, 여성, 인권, invandring, samfund, innvandring, maahanmuutto, migrace, migracija, társadalom, societate, μεταναστευτικό, μετανάστευση, imigrasi
    """,
    t.HUMAN_INTEREST: """
        human interest, weird news, odd news, offbeat, oddly enough, strange news, good news, royals, royal family, animals funny, viral, kurioses, kuriositäten, curiosidades, insolite, curiosità, bizzarro, bizar, opmerkelijk, ciekawostki, курьезы, курьёзы, цікавинки, ilginç haberler, طرائف, غرائب, 奇闻, 奇聞, 趣闻, おもしろ, 해외토픽, kuriosa, kuriózum, curiozități, zanimljivosti, zajímavosti, παράξενα, अजब गजब, unik, chuyện lạ, แปลก
    """,
}
